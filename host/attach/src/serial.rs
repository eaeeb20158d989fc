//! Real boards on serial ports: finds them, tells who they are, and gives them their pages.
//!
//! A board repeats its boot packet until a host starts it, so whoever listens learns its name, chip, build and page. One that an
//! earlier host has left in the middle of a run is silent; a reset makes it start again. One that runs on its own clock reports its
//! rounds, and at once when it is asked, as a round may take minutes: it is left alone.

mod line;
mod ports;

pub use ports::ports;

use super::board_file::BoardFile;
use fabswarm_shared::BUILD_ID;
use fabswarm_shared::packet::{self, BoardIdentity, Packet, ResetCause, Telemetry};
use fabswarm_shared::provisioning::{self, page_crc};
use line::SerialLine;
use serialport::TTYPort;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Baud rates that boards use; USB has none.
const BAUD_RATES: [u32; 2] = [921_600, 115_200];

/// How long to listen to a port before its board is asked something.
const LISTEN_FOR: Duration = Duration::from_millis(700);

/// What a silent board is asked, at each baud rate, and how long it may take to answer: whether it is there, which one on its own
/// clock answers with its round, and then to start again.
const QUESTIONS: [(Option<Packet>, Duration); 3] = [
    (None, LISTEN_FOR),
    (Some(Packet::Mark { number: 0 }), Duration::from_millis(300)),
    (Some(Packet::Reset), Duration::from_millis(1000)),
];

/// How long a board may take to answer, and to start with its new page.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
const START_WITHIN: Duration = Duration::from_secs(8);

/// Bytes of a page that one packet carries: whole words, and no more than the smallest receiver buffers.
const PAGE_CHUNK: usize = 128;

/// How often a part of a page is sent again.
const TRIES: usize = 3;

/// What is wrong with a port or its board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SerialError {
    /// The port cannot be opened.
    #[error("cannot open {}: {reason}\nhelp: {}", path.display(), open_help(reason))]
    Open {
        /// The port.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Nothing arrived.
    #[error(
        "nothing on {} answers\nhelp: check that the board has power and runs fabswarm's firmware (`fabswarm boards flash`)",
        path.display()
    )]
    NoAnswer {
        /// The port.
        path: PathBuf,
    },
    /// What arrived are no packets.
    #[error(
        "{} sent {bytes} bytes that are no packets of fabswarm\nhelp: check the baud rate ({}), and that no other firmware runs on the board",
        path.display(),
        BAUD_RATES.map(|rate| rate.to_string()).join(" or ")
    )]
    Garbage {
        /// The port.
        path: PathBuf,
        /// How many bytes arrived.
        bytes: usize,
    },
    /// The board is in the middle of a trial, on its own clock.
    #[error(
        "the board on {} runs agent {agent}, in round {round}\nhelp: wait until its trial is over, or end it with `fabswarm boards reset`",
        path.display()
    )]
    Running {
        /// The port.
        path: PathBuf,
        /// The baud rate at which it was understood.
        baud: u32,
        /// Its agent.
        agent: u16,
        /// The agent's round.
        round: u32,
    },
    /// The board's firmware has another packet format.
    #[error(
        "the board `{board}` on {} has packet schema {schema:#010x}, the host {:#010x}\nhelp: flash it with this version: `fabswarm boards flash`",
        path.display(),
        packet::SCHEMA
    )]
    Schema {
        /// The port.
        path: PathBuf,
        /// The board's name.
        board: String,
        /// Its schema.
        schema: u32,
    },
    /// The board's firmware was built from other sources.
    #[error(
        "the board `{}` on {} runs build {:016x}, the host build {BUILD_ID:016x}\nhelp: flash it with this version: `fabswarm boards flash`",
        board.name,
        board.path.display(),
        board.build
    )]
    BuildId {
        /// The board.
        board: Box<FoundBoard>,
    },
    /// A board without a number cannot be told from another.
    #[error("the board on {} has no number of its own\nhelp: use another kind of board", path.display())]
    NoChip {
        /// The port.
        path: PathBuf,
    },
    /// Two ports lead to the same chip, or two chips have the same number.
    #[error(
        "the boards on {} and {} both say that they are chip {chip:016x}\nhelp: unplug one of them; clones of a flash chip may share their number",
        paths[0].display(),
        paths[1].display()
    )]
    SameChip {
        /// Both ports.
        paths: [PathBuf; 2],
        /// The number.
        chip: u64,
    },
    /// There are fewer boards than agents.
    #[error(
        "the scenario places {needed} agents on serial ports, and there are {found} boards{}\nhelp: plug in more boards, or place fewer agents on them; `fabswarm boards list` shows what is there",
        troubles.iter().map(|trouble| format!("\n  {}", trouble.lines().next().unwrap_or_default())).collect::<String>()
    )]
    TooFew {
        /// Agents on serial ports.
        needed: usize,
        /// Boards found.
        found: usize,
        /// What is wrong with other ports.
        troubles: Vec<String>,
    },
    /// The board did not take its page.
    #[error("the board on {} did not take its page: {reason}\nhelp: unplug it, plug it in again and retry", path.display())]
    Page {
        /// The port.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// What helps against an error of opening a port.
fn open_help(reason: &str) -> &'static str {
    if reason.contains("ermission") {
        "add yourself to the group dialout: `sudo usermod -aG dialout $USER`, then log in again (see `fabswarm doctor`)"
    } else if reason.contains("busy") {
        "end the program that uses the port (ModemManager is known for it, see `fabswarm doctor`)"
    } else {
        "check that the board is plugged in; `fabswarm boards list` shows the ports"
    }
}

/// A board that answered on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBoard {
    /// The port.
    pub path: PathBuf,
    /// The baud rate at which it was understood.
    pub baud: u32,
    /// The name in its `board.toml`.
    pub name: String,
    /// The number of its chip.
    pub chip: Option<u64>,
    /// Its build.
    pub build: u64,
    /// Why it started.
    pub reset: ResetCause,
    /// What the panic said that ended its last run, if one did.
    pub panic: Option<String>,
    /// Its identity, or why it has none.
    pub page: Result<BoardIdentity, provisioning::Error>,
}

/// A real board of a swarm.
#[derive(Debug)]
pub(super) struct SerialBoard {
    pub(super) path: PathBuf,
    pub(super) chip: u64,
    baud: u32,
}

impl SerialBoard {
    /// Opens its port again, if it is there.
    pub(super) fn reopen(&self) -> Option<TTYPort> {
        line::open(&self.path, self.baud, Duration::ZERO).ok()
    }
}

/// A board that has its page and waits to be started.
#[derive(Debug)]
pub(super) struct ReadyBoard {
    pub(super) board: SerialBoard,
    pub(super) port: TTYPort,
    /// The name in its `board.toml`.
    pub(super) name: String,
}

/// Listens to a port until it tells which board is on it.
///
/// # Errors
/// [`SerialError`] if it does not, or its firmware is of another version.
pub fn identify(path: &Path) -> Result<FoundBoard, SerialError> {
    identify_on(path).map(|(found, _)| found)
}

fn identify_on(path: &Path) -> Result<(FoundBoard, SerialLine), SerialError> {
    let mut line = SerialLine::open(path, BAUD_RATES[0])?;
    let mut schema = None;
    let questions = BAUD_RATES.into_iter().flat_map(|rate| QUESTIONS.map(|question| (rate, question)));
    for (rate, (question, answer_within)) in questions {
        if rate != line.baud() {
            line.set_baud(rate);
        }
        if let Some(packet) = question {
            line.send(&packet);
        }
        let listen_until = Instant::now() + answer_within;
        while let Some(bytes) = line.next_packet(listen_until) {
            if let Ok(Packet::Boot(boot)) = Packet::decode(&bytes)
                && boot.schema == packet::SCHEMA
            {
                let found = FoundBoard {
                    path: path.to_owned(),
                    baud: line.baud(),
                    name: boot.board.to_owned(),
                    chip: boot.chip,
                    build: boot.build,
                    reset: boot.reset,
                    panic: boot.panic.map(str::to_owned),
                    page: boot.page,
                };
                return Ok((found, line));
            }
            if let Some(running) = running(path, &line, &bytes) {
                return Err(running);
            }
            if let Some((board, number)) = packet::boot_schema(&bytes) {
                schema = Some((board.to_owned(), number));
            }
        }
    }
    Err(match (schema, line.noise()) {
        (Some((board, schema)), _) => SerialError::Schema { path: path.to_owned(), board, schema },
        (None, 0) => SerialError::NoAnswer { path: path.to_owned() },
        (None, bytes) => SerialError::Garbage { path: path.to_owned(), bytes },
    })
}

/// What a packet says of a board that runs on its own clock; `None` for any other packet.
fn running(path: &Path, line: &SerialLine, bytes: &[u8]) -> Option<SerialError> {
    let Ok(Packet::Telemetry(Telemetry { agent, round, .. }, _)) = Packet::decode(bytes) else { return None };
    Some(SerialError::Running { path: path.to_owned(), baud: line.baud(), agent, round })
}

/// Identifies the boards on all ports at once. Each port has its board, or what is wrong with it.
#[must_use]
pub fn identify_all(ports: &[PathBuf]) -> Vec<Result<FoundBoard, SerialError>> {
    on_all(ports.iter(), |path| identify(path))
}

/// Applies `act` to all items at once, each on a thread of its own.
fn on_all<I: Send, T: Send>(items: impl Iterator<Item = I>, act: impl Fn(I) -> T + Sync) -> Vec<T> {
    let act = &act;
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.map(|item| scope.spawn(move || act(item))).collect();
        // A panic in a thread goes on here.
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Finds `needed` boards on the ports that match `pattern`, in the order of their chips.
pub(super) fn find_boards(pattern: Option<&str>, needed: usize) -> Result<Vec<FoundBoard>, SerialError> {
    let (mut found, mut troubles) = (Vec::new(), Vec::new());
    for outcome in identify_all(&ports(pattern)) {
        match outcome {
            Ok(board) if board.build != BUILD_ID => {
                troubles.push(SerialError::BuildId { board: Box::new(board) }.to_string());
            }
            Ok(board) if board.chip.is_none() => {
                troubles.push(SerialError::NoChip { path: board.path }.to_string());
            }
            Ok(board) => found.push(board),
            Err(trouble) => troubles.push(trouble.to_string()),
        }
    }
    found.sort_by_key(|board| board.chip);
    for pair in found.windows(2) {
        if let (true, Some(chip)) = (pair[0].chip == pair[1].chip, pair[0].chip) {
            return Err(SerialError::SameChip { paths: [pair[0].path.clone(), pair[1].path.clone()], chip });
        }
    }
    if found.len() < needed {
        return Err(SerialError::TooFew { needed, found: found.len(), troubles });
    }
    found.truncate(needed);
    Ok(found)
}

/// Gives each board its page, all at once.
pub(super) fn prepare(boards: Vec<(FoundBoard, &[u8])>) -> Result<Vec<ReadyBoard>, SerialError> {
    on_all(boards.into_iter(), |(board, page)| {
        let (line, _) = write_page(&board, page)?;
        Ok(ReadyBoard {
            board: SerialBoard { chip: board.chip.unwrap_or_default(), baud: board.baud, path: board.path },
            port: line.into_port()?,
            name: board.name,
        })
    })
    .into_iter()
    .collect()
}

/// Replaces the page of a board that does not run, restarts it, and returns who it is then.
///
/// # Errors
/// [`SerialError::Page`] if the board does not answer, runs, or refuses the page; [`SerialError::Open`] if its port is gone.
pub fn provision(board: &FoundBoard, page: &[u8]) -> Result<BoardIdentity, SerialError> {
    write_page(board, page).map(|(_, identity)| identity)
}

fn write_page(board: &FoundBoard, page: &[u8]) -> Result<(SerialLine, BoardIdentity), SerialError> {
    let refuse = |reason: String| SerialError::Page { path: board.path.clone(), reason };
    let room = BoardFile::page_bytes(&board.name);
    if room.is_some_and(|room| page.len() as u64 > room) {
        return Err(refuse(format!(
            "it takes {} bytes, and the board has {}",
            page.len(),
            room.unwrap_or(0)
        )));
    }
    let mut line = SerialLine::open(&board.path, board.baud)?;
    if !enter_service(&board.path, &mut line)? {
        return Err(refuse("it does not go into service".to_owned()));
    }
    for (number, chunk) in page.chunks(PAGE_CHUNK).enumerate() {
        let offset = (number * PAGE_CHUNK) as u32;
        // Flash is written in whole units, the largest of which are 8 bytes.
        let mut bytes = chunk.to_vec();
        bytes.resize(chunk.len().next_multiple_of(8), 0xFF);
        let is_taken = (0..TRIES).any(|_| {
            line.send(&Packet::PageBytes { offset, bytes: &bytes });
            line.send(&Packet::Mark { number: offset });
            line.wait(ANSWER_WITHIN, |packet| packet == Packet::Mark { number: offset })
        });
        if !is_taken {
            return Err(refuse(format!("no answer at byte {offset}")));
        }
    }
    line.send(&Packet::Reset);
    let mut outcome = Err("it did not start with it".to_owned());
    line.wait(START_WITHIN, |packet| {
        let Packet::Boot(boot) = packet else { return false };
        match boot.page {
            Ok(identity) if identity.page_crc == page_crc(page) => {
                outcome = Ok(identity);
                true
            }
            // It may say so from before its restart: only the last word counts.
            Err(error) => {
                outcome = Err(error.to_string());
                false
            }
            // Of the page it had before.
            Ok(_) => false,
        }
    });
    let identity = outcome.map_err(refuse)?;
    Ok((line, identity))
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
            if let Some(running) = running(path, line, &bytes) {
                return Err(running);
            }
        }
        // It may be in the middle of a run that nobody hosts any more.
        line.send(&Packet::Reset);
    }
    Ok(false)
}

/// Restarts the board on a port, whatever it does.
///
/// # Errors
/// [`SerialError`] if it does not tell that it has started.
pub fn reset(path: &Path, baud: u32) -> Result<(), SerialError> {
    let mut line = SerialLine::open(path, baud)?;
    line.send(&Packet::Reset);
    line.drain();
    if line.wait(START_WITHIN, |packet| matches!(packet, Packet::Boot(_))) {
        Ok(())
    } else {
        Err(SerialError::NoAnswer { path: path.to_owned() })
    }
}

/// Turns the light of the board on a port on, whatever it does.
///
/// # Errors
/// [`SerialError::Open`] if its port is gone.
pub fn light(path: &Path, baud: u32) -> Result<(), SerialError> {
    SerialLine::open(path, baud)?.send(&Packet::Identify);
    Ok(())
}

/// Passes every packet that arrives on any of the ports within `time` to `see`, and disturbs no board. Returns how many packets came
/// on each.
///
/// # Errors
/// [`SerialError::Open`] for a port that cannot be opened.
pub fn monitor(
    ports: &[PathBuf],
    time: Duration,
    see: impl Fn(&Path, &Packet) + Sync,
) -> Vec<Result<usize, SerialError>> {
    on_all(ports.iter(), |path| monitor_port(path, time, |packet| see(path, packet)))
}

fn monitor_port(path: &Path, time: Duration, see: impl Fn(&Packet)) -> Result<usize, SerialError> {
    let deadline = Instant::now() + time;
    let [first, rates @ ..] = BAUD_RATES;
    let mut line = SerialLine::open(path, first)?;
    let (mut packets, mut rates) = (0, rates.into_iter());
    while Instant::now() < deadline {
        while let Some(bytes) = line.next_packet(deadline.min(Instant::now() + LISTEN_FOR)) {
            if let Ok(packet) = Packet::decode(&bytes) {
                packets += 1;
                see(&packet);
            }
        }
        if packets == 0
            && line.noise() > 0
            && let Some(rate) = rates.next()
        {
            line.set_baud(rate);
        }
    }
    Ok(packets)
}
