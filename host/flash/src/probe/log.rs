//! The log of a board, which it keeps in RAM for a debug probe to read: SEGGER's RTT.

use super::{CHUNK_BYTES, Probe, attach, facts, failure};
use crate::{FlashJob, checks::pieces};
use fabswarm_diagnostic::Diagnostic;
use probe_rs::{Core, MemoryInterface};
use std::thread;
use std::time::Duration;

/// The first bytes of the control block.
const NAME: [u8; 10] = *b"SEGGER RTT";
/// Offset of the descriptor of the first buffer that the board fills: its name, address, length, positions of the board's writes and
/// the host's reads, and flags.
const BUFFER_AT: u64 = 24;
/// Offset of the position of the host's reads.
const READ_AT: u64 = BUFFER_AT + 16;
/// No buffer of a board is longer.
const LONGEST: u32 = 1 << 16;
/// Pause while the buffer is empty.
const PAUSE: Duration = Duration::from_millis(20);

/// Reads the log of the board behind a probe while `goes_on`, and passes the bytes to `take`. The board runs on meanwhile.
///
/// # Errors
/// If the chip does not answer, is another one, runs another image, or has no log at `block_at`.
pub fn follow_log(
    job: &FlashJob,
    probe: Probe,
    block_at: u64,
    goes_on: &dyn Fn() -> bool,
    take: &mut dyn FnMut(&[u8]),
) -> Result<(), Diagnostic> {
    let mut session = attach(job, probe)?;
    facts(job, &mut session)?;
    let failed = failure("tell its log");
    let mut core = session.core(0).map_err(&failed)?;
    check_image(job, &mut core)?;
    let mut name = [0; NAME.len()];
    core.read(block_at, &mut name).map_err(&failed)?;
    let no_log = || {
        let what = format!("has no log at {block_at:#x}");
        Diagnostic::new(what, "check that the board has started; reset it, and look again")
    };
    if name != NAME {
        return Err(no_log());
    }
    while goes_on() {
        let mut buffer = [0; 5];
        core.read_32(block_at + BUFFER_AT, &mut buffer).map_err(&failed)?;
        let [_, begins_at, length, written, read] = buffer;
        if length > LONGEST || written >= length.max(1) || read >= length.max(1) {
            return Err(no_log());
        }
        if written == read {
            thread::sleep(PAUSE);
            continue;
        }
        // To the end of the buffer, if it goes on at its start.
        let end = if written > read { written } else { length };
        let mut bytes = vec![0; (end - read) as usize];
        core.read(u64::from(begins_at) + u64::from(read), &mut bytes).map_err(&failed)?;
        core.write_word_32(block_at + READ_AT, end % length).map_err(&failed)?;
        take(&bytes);
    }
    Ok(())
}

/// The log of another image cannot be decoded: it holds only numbers.
fn check_image(job: &FlashJob, core: &mut Core) -> Result<(), Diagnostic> {
    let failed = failure("tell which image it has");
    for (address, expected) in job.image.parts().flat_map(|part| pieces(part, CHUNK_BYTES)) {
        let mut found = vec![0; expected.len()];
        core.read(address, &mut found).map_err(&failed)?;
        if found != expected {
            let what = "runs another image than the one that its log would be decoded with";
            return Err(Diagnostic::new(what, "flash it again with `fabswarm boards flash`"));
        }
    }
    Ok(())
}
