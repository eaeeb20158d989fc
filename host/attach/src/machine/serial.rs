//! Real boards on serial ports: finds and identifies them, and gives them their pages.
//!
//! A board repeats its boot packet, with its name, chip, build and page, until a host starts it. A board that an earlier host has left
//! in the middle of a run is silent until it is reset. A board on its own clock reports each round, and on request, as a round may
//! take minutes; it is left alone.

mod control_lines;
mod line;
mod ports;

pub(crate) use control_lines::lines_of;
pub use ports::ports;

use super::boot_check::printable;
use super::packet_stream::PacketStream;
use super::rig::PowerSwitch;
use fabswarm_board_file::SerialPort as ControlLines;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::BUILD_ID;
use fabswarm_shared::packet::{self, BoardIdentity, Boot, Packet, ResetCause, Telemetry};
use fabswarm_shared::provisioning;
use fabswarm_sim::record::counted;
pub(crate) use line::SerialLine;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Baud rates that boards use; USB has none.
const BAUD_RATES: [u32; 2] = [921_600, 115_200];

/// How long to listen to a port before its board is asked something.
const LISTEN_FOR: Duration = Duration::from_millis(700);

/// Requests to a silent board, at each baud rate, with their timeouts. A board on its own clock answers a mark with its round; any
/// other is reset.
const QUESTIONS: [(Option<Packet>, Duration); 3] = [
    (None, LISTEN_FOR),
    (Some(Packet::Mark { number: 0 }), Duration::from_millis(300)),
    (Some(Packet::Reset), Duration::from_millis(1000)),
];

/// How long a board may take after its boot packet to report its round, or to repeat the packet.
const FLIES_WITHIN: Duration = Duration::from_millis(300);

/// How long a board may take to start.
pub(crate) const START_WITHIN: Duration = Duration::from_secs(8);

/// Interval at which a restarting board is asked to wait for a page: it may not listen yet.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A fault of a port or its board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SerialError {
    /// The board is in the middle of a trial, on its own clock.
    #[error("{what}")]
    Running {
        /// The port.
        path: PathBuf,
        /// The baud rate at which it was understood.
        baud: u32,
        /// The message to the user.
        what: Diagnostic,
        /// Its agent.
        agent: u16,
        /// The agent's round.
        round: u32,
    },
    /// Anything else.
    #[error(transparent)]
    Port(#[from] Diagnostic),
}

impl From<SerialError> for Diagnostic {
    fn from(error: SerialError) -> Self {
        match error {
            SerialError::Running { what, .. } | SerialError::Port(what) => what,
        }
    }
}

fn not_opened(path: &Path, reason: &str) -> Diagnostic {
    let remedy = if reason.contains("ermission") {
        "add yourself to the group dialout: `sudo usermod -aG dialout $USER`, then log in again (see `fabswarm doctor`)"
    } else if reason.contains("busy") {
        "end the program that uses the port (ModemManager is known for it, see `fabswarm doctor`)"
    } else {
        "check that the board is plugged in; `fabswarm boards list` shows the ports"
    };
    Diagnostic::new(format!("cannot open {}: {reason}", path.display()), remedy)
}

/// Nothing arrived.
fn no_answer(path: &Path) -> Diagnostic {
    let remedy = "check that the board has power and runs fabswarm's firmware (`fabswarm boards flash`)";
    Diagnostic::new(format!("nothing on {} answers", path.display()), remedy)
}

/// The board on a port did not take its page.
#[must_use]
pub fn page_refusal(path: &Path, reason: &str) -> Diagnostic {
    let what = format!("the board on {} did not take its provisioning record: {reason}", path.display());
    Diagnostic::new(what, "unplug it, plug it in again and retry")
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
    /// The message of the panic that ended its last run, if one did.
    pub panic: Option<String>,
    /// Its identity, or why it has none.
    pub page: Result<BoardIdentity, provisioning::Error>,
}

/// A real board of a swarm.
#[derive(Debug)]
pub(crate) struct SerialBoard {
    pub(crate) path: PathBuf,
    pub(crate) chip: u64,
    pub(crate) baud: u32,
    pub(crate) lines: ControlLines,
    pub(crate) power: Option<PowerSwitch>,
    /// The name in its `board.toml`.
    pub(crate) name: String,
}

impl SerialBoard {
    /// Opens its port, if it is plugged in.
    pub(super) fn open(&self) -> Option<PacketStream> {
        let path = self.power.as_ref().and_then(|power| power.port.as_ref()).unwrap_or(&self.path);
        line::open(path, self.baud, self.lines, Duration::ZERO).ok()
    }
}

/// Listens to a port until it tells which board is on it.
///
/// # Errors
/// [`SerialError`] if it does not, or its firmware is of another version.
pub fn identify(path: &Path) -> Result<FoundBoard, SerialError> {
    // The lines that the board wants are not known yet.
    let mut line = SerialLine::open(path, BAUD_RATES[0], ControlLines::default())?;
    let mut schema = None;
    let questions = BAUD_RATES.into_iter().flat_map(|rate| QUESTIONS.map(|question| (rate, question)));
    for (rate, (question, answer_within)) in questions {
        if rate != line.baud {
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
                    baud: line.baud,
                    name: printable(boot.board),
                    chip: boot.chip,
                    build: boot.build,
                    reset: boot.reset,
                    panic: boot.panic.map(printable),
                    page: boot.page,
                };
                if found.page.is_ok() {
                    refuse_in_flight(path, &mut line)?;
                }
                return Ok(found);
            }
            refuse_running(path, &line, &bytes)?;
            if let Some((board, number)) = packet::boot_schema(&bytes) {
                schema = Some((printable(board), number));
            }
        }
    }
    let (port, host) = (path.display(), packet::SCHEMA);
    let rates = BAUD_RATES.map(|rate| rate.to_string()).join(" or ");
    let trouble = match (schema, line.noise()) {
        (Some((board, schema)), _) => Diagnostic::new(
            format!("the board `{board}` on {port} has packet schema {schema:#010x}, the host {host:#010x}"),
            "flash it with this version: `fabswarm boards flash`",
        ),
        (None, 0) => no_answer(path),
        (None, bytes) => Diagnostic::new(
            format!("{port} sent {bytes} bytes that are no packets of fabswarm"),
            format!("check the baud rate ({rates}), and that no other firmware runs on the board"),
        ),
    };
    Err(trouble.into())
}

/// Fails if a board that has sent its boot packet is in flight. A board on its own clock sends one now and then, and answers a mark
/// with its round; a board that waits for its host repeats the boot packet.
fn refuse_in_flight(path: &Path, line: &mut SerialLine) -> Result<(), SerialError> {
    line.send(&Packet::Mark { number: 0 });
    let answer_until = Instant::now() + FLIES_WITHIN;
    while let Some(bytes) = line.next_packet(answer_until) {
        if let Ok(Packet::Boot(_)) = Packet::decode(&bytes) {
            break;
        }
        refuse_running(path, line, &bytes)?;
    }
    Ok(())
}

/// Fails if the packet of a board shows that it runs on its own clock.
pub(crate) fn refuse_running(path: &Path, line: &SerialLine, bytes: &[u8]) -> Result<(), SerialError> {
    let Ok(Packet::Telemetry(Telemetry { agent, round, .. }, _)) = Packet::decode(bytes) else {
        return Ok(());
    };
    let what = format!("the board on {} runs agent {agent}, in round {round}", path.display());
    let what = Diagnostic::new(what, "wait until its trial is over, or end it with `fabswarm boards reset`");
    Err(SerialError::Running { path: path.to_owned(), baud: line.baud, what, agent, round })
}

/// Identifies the boards on all ports at once. Each port has its board, or what is wrong with it.
#[must_use]
pub fn identify_all(ports: &[PathBuf]) -> Vec<Result<FoundBoard, SerialError>> {
    on_all(ports.iter(), |path| identify(path))
}

/// Applies `act` to all items at once, each on a thread of its own.
pub fn on_all<I: Send, T: Send>(items: impl Iterator<Item = I>, act: impl Fn(I) -> T + Sync) -> Vec<T> {
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

/// Finds `needed` boards on these ports, in the order of their chips.
pub(crate) fn find_boards(ports: &[PathBuf], needed: usize) -> Result<Vec<FoundBoard>, Diagnostic> {
    let (mut found, mut troubles) = (Vec::new(), Vec::new());
    for outcome in identify_all(ports) {
        match outcome {
            Ok(board) if board.build != BUILD_ID => {
                let FoundBoard { name, build, path, .. } = &board;
                let runs = format!("runs build {build:016x}, the host build {BUILD_ID:016x}");
                troubles.push(format!("the board `{name}` on {} {runs}", path.display()));
            }
            Ok(board) if board.chip.is_none() => {
                troubles.push(format!("the board on {} has no number of its own", board.path.display()));
            }
            Ok(board) => found.push(board),
            Err(trouble) => troubles.push(trouble.to_string()),
        }
    }
    found.sort_by_key(|board| board.chip);
    for pair in found.windows(2) {
        if let (true, Some(chip)) = (pair[0].chip == pair[1].chip, pair[0].chip) {
            let [one, other] = [&pair[0], &pair[1]].map(|board| board.path.display());
            return Err(Diagnostic::new(
                format!("the boards on {one} and {other} both say that they are chip {chip:016x}"),
                "unplug one of them; clones of a flash chip may share their number",
            ));
        }
    }
    if found.len() < needed {
        let first_line = |trouble: &String| format!("\n  {}", trouble.lines().next().unwrap_or_default());
        let troubles: String = troubles.iter().map(first_line).collect();
        let (agents, boards) = (counted(needed, "agent"), counted(found.len(), "board"));
        return Err(Diagnostic::new(
            format!("the scenario places {agents} on serial ports, and there are {boards}{troubles}"),
            "plug in more boards, or place fewer agents on them; `fabswarm boards list` shows what is there",
        ));
    }
    found.truncate(needed);
    Ok(found)
}

/// Restarts a board that waits for its host or a page.
///
/// # Errors
/// If it does not tell that it has started.
pub fn reset(board: &FoundBoard) -> Result<(), Diagnostic> {
    let FoundBoard { path, baud, page, .. } = board;
    let mut line = SerialLine::open(path, *baud, ControlLines::default())?;
    line.send(&Packet::Reset);
    line.drain();
    // Until it restarts, a board that waits for its host repeats its old boot packet.
    let is_same = |boot: &Boot| matches!((boot.page, page), (Ok(now), Ok(before)) if now.boot == before.boot);
    if line.wait(START_WITHIN, |packet| matches!(packet, Packet::Boot(boot) if !is_same(&boot))) {
        Ok(())
    } else {
        Err(no_answer(path))
    }
}

/// Restarts a board that keeps its own time and lets it wait for a page: its trial is over.
///
/// # Errors
/// If it does not tell that it waits.
pub fn end_trial(path: &Path, baud: u32) -> Result<(), Diagnostic> {
    wait_for_page(path, baud, ControlLines::default(), START_WITHIN)
}

/// Restarts a board and lets it wait for a page; fails if it does not tell that it does within `time`.
pub(crate) fn wait_for_page(
    path: &Path,
    baud: u32,
    lines: ControlLines,
    time: Duration,
) -> Result<(), Diagnostic> {
    let mut line = SerialLine::open(path, baud, lines)?;
    line.send(&Packet::Reset);
    line.drain();
    let answer_until = Instant::now() + time;
    while Instant::now() < answer_until {
        line.send(&Packet::Service);
        let in_service = |packet: Packet| matches!(packet, Packet::Boot(boot) if boot.page.is_err());
        if line.wait(ASK_EVERY, in_service) {
            return Ok(());
        }
    }
    Err(no_answer(path))
}

/// Turns the light of the board on a port on, whatever it does.
///
/// # Errors
/// If its port is gone.
pub fn light(path: &Path, baud: u32) -> Result<(), Diagnostic> {
    SerialLine::open(path, baud, ControlLines::default())?.send(&Packet::Identify);
    Ok(())
}

/// Passes every packet that arrives on any of the ports while `goes_on` to `see`, and disturbs no board. Returns how many packets
/// came on each.
///
/// # Errors
/// For a port that cannot be opened.
pub fn monitor(
    ports: &[PathBuf],
    goes_on: impl Fn() -> bool + Sync,
    see: impl Fn(&Path, &Packet) + Sync,
) -> Vec<Result<usize, Diagnostic>> {
    on_all(ports.iter(), |path| monitor_port(path, &goes_on, |packet| see(path, packet)))
}

fn monitor_port(path: &Path, goes_on: impl Fn() -> bool, see: impl Fn(&Packet)) -> Result<usize, Diagnostic> {
    let [first, rates @ ..] = BAUD_RATES;
    let mut line = SerialLine::open(path, first, ControlLines::default())?;
    let (mut packets, mut rates) = (0, rates.into_iter());
    while goes_on() {
        if let Some(bytes) = line.next_packet(Instant::now() + LISTEN_FOR) {
            if let Ok(packet) = Packet::decode(&bytes) {
                packets += 1;
                see(&packet);
            }
        } else if packets == 0
            && line.noise() > 0
            && let Some(rate) = rates.next()
        {
            line.set_baud(rate);
        }
    }
    Ok(packets)
}
