//! Pages for boards on serial ports.

use super::page::page_room;
use crate::machine::packet_stream::PacketStream;
use crate::machine::serial::{
    FoundBoard, START_WITHIN, SerialBoard, SerialError, SerialLine, lines_of, on_all, page_refusal,
    refuse_running,
};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::packet::{BoardIdentity, Packet};
use fabswarm_shared::provisioning::page_crc;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Bytes of a page that one packet carries: whole words, and no more than the smallest receiver buffers.
const PAGE_CHUNK: usize = 128;

/// How often a part of a page is sent again.
const TRIES: usize = 3;

/// Gives all boards their pages, and then restarts all of them, so that boards on their own clocks begin together. What a board sends
/// from its start on is kept in its stream.
pub(crate) fn prepare(
    boards: Vec<(FoundBoard, &[u8])>,
) -> Result<Vec<(SerialBoard, PacketStream)>, SerialError> {
    let written = on_all(boards.into_iter(), |(board, page)| {
        let line = write_page(&board, page)?;
        Ok((board, page, line))
    });
    let written = written.into_iter().collect::<Result<Vec<_>, SerialError>>()?;
    let left = AtomicUsize::new(written.len());
    let started = on_all(written.into_iter(), |(board, page, mut line)| {
        let sign = start(&mut line, &board.path, page, true);
        left.fetch_sub(1, Ordering::Relaxed);
        line.keep(&sign?, || left.load(Ordering::Relaxed) > 0);
        let FoundBoard { path, baud, name, chip, .. } = board;
        let (chip, lines) = (chip.unwrap_or_default(), lines_of(&name));
        Ok((SerialBoard { path, chip, baud, lines, power: None, name }, line.into_stream()?))
    });
    started.into_iter().collect()
}

/// Replaces the page of a board that does not run, restarts it, and returns who it is then.
///
/// # Errors
/// If the board does not answer, runs, or refuses the page, or its port is gone.
pub fn provision_board(board: &FoundBoard, page: &[u8]) -> Result<BoardIdentity, SerialError> {
    let refuse = |reason: &str| page_refusal(&board.path, reason);
    let mut line = write_page(board, page)?;
    match Packet::decode(&start(&mut line, &board.path, page, false)?) {
        Ok(Packet::Boot(boot)) => Ok(boot.page.map_err(|error| refuse(&error.to_string()))?),
        _ => Err(refuse(NOT_STARTED).into()),
    }
}

/// The reason if a board does not respond to its page.
const NOT_STARTED: &str = "it did not start with it";

/// Writes a page to a board, which is in service then.
fn write_page(board: &FoundBoard, page: &[u8]) -> Result<SerialLine, SerialError> {
    let refuse = |reason: &str| SerialError::from(page_refusal(&board.path, reason));
    let (bytes, room) = (page.len(), page_room(&board.name, None)?);
    if bytes as u64 > room {
        return Err(refuse(&format!("it takes {bytes} bytes, and the board has {room}")));
    }
    let mut line = SerialLine::open(&board.path, board.baud, lines_of(&board.name))?;
    if !enter_service(&board.path, &mut line)? {
        return Err(refuse("it does not go into service"));
    }
    for (number, chunk) in page.chunks(PAGE_CHUNK).enumerate() {
        let offset = (number * PAGE_CHUNK) as u32;
        // Flash is written in whole units, the largest of which are 8 bytes.
        let mut bytes = chunk.to_vec();
        bytes.resize(chunk.len().next_multiple_of(8), 0xFF);
        // The board returns it if it has written the bytes up to there.
        let written = Packet::Mark { number: offset + bytes.len() as u32 };
        let is_taken = (0..TRIES).any(|_| {
            line.send(&Packet::PageBytes { offset, bytes: &bytes });
            line.send(&written);
            line.wait(ANSWER_WITHIN, |packet| packet == written)
        });
        if !is_taken {
            return Err(refuse(&format!("no answer at byte {offset}")));
        }
    }
    Ok(line)
}

/// Restarts a board that has a new page. Returns the first packet that shows that it has started with it: its boot packet, or, if
/// `rounds_count`, a report of a round. A board on its own clock may send its boot packet before its USB port is back.
fn start(line: &mut SerialLine, path: &Path, page: &[u8], rounds_count: bool) -> Result<Vec<u8>, Diagnostic> {
    line.send(&Packet::Reset);
    let start_until = Instant::now() + START_WITHIN;
    let mut refused = NOT_STARTED.to_owned();
    while let Some(bytes) = line.next_packet(start_until) {
        match Packet::decode(&bytes) {
            Ok(Packet::Boot(boot)) => match boot.page {
                Ok(identity) if identity.page_crc == page_crc(page) => return Ok(bytes),
                // It may be from before the restart: only the last one counts.
                Err(error) => refused = error.to_string(),
                // The boot packet was sent before the restart.
                Ok(_) => {}
            },
            Ok(Packet::Taken { .. } | Packet::Telemetry(..)) if rounds_count => return Ok(bytes),
            _ => {}
        }
    }
    Err(page_refusal(path, &refused))
}

/// Makes the board leave its agent, unless it runs on its own clock. Returns whether it did.
fn enter_service(path: &Path, line: &mut SerialLine) -> Result<bool, SerialError> {
    for _ in 0..TRIES {
        line.send(&Packet::Service);
        let answer_until = Instant::now() + ANSWER_WITHIN;
        while let Some(bytes) = line.next_packet(answer_until) {
            if matches!(Packet::decode(&bytes), Ok(Packet::Boot(boot)) if boot.page.is_err()) {
                return Ok(true);
            }
            refuse_running(path, line, &bytes)?;
        }
        // It may be in the middle of a run whose host is gone.
        line.send(&Packet::Reset);
    }
    Ok(false)
}
