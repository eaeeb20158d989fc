//! Agents outside this process: each on a board of its own, emulated or native.
//!
//! The host starts the boards, is their air, and hears their telemetry. A board's round goes like this:
//!
//! ```text
//!   board                                   host
//!     │ boot (repeated until answered) ──────▶ │  is it the right board, with the right page?
//!     │ ◀────────────────────────── start(k) │
//!     │ frames of round k, telemetry ────────▶ │  the same frames as its shadow's?
//!     │ ◀───── frames it heard, round over(k) │
//!     │ frames of k+1, telemetry of round k ─▶ │  the same digest as its shadow's?
//! ```
//!
//! Shadows go first and boards follow. A board goes through a round as soon as everybody it hears in it has spoken, not when the
//! whole swarm has: where few hear each other it goes through several at once, while its code is in the host's caches. In every
//! round it hears what it would hear in step with the others.

mod board;
mod cable;
mod dump;
mod error;
mod flash;
mod image;
mod log;
mod native;
mod placement;
mod process;
mod qemu;
mod remote;
mod script;

pub use error::Error;
pub use placement::{Placement, PlacementError, Seat};

use crate::swarm::AgentSetup;
use crate::task::Task;
use board::{Board, Difference, Hands, Parting, Place};
use cable::Framing;
use dump::Dump;
use fabswarm_shared::problem::Problem;
use fabswarm_shared::provisioning::{BOARD_MEMBERS_LARGE, BOARD_WORDS, Pace, Page};
use log::Words;
use mio::{Events, Poll};
use script::Speech;
use std::{
    fs, io,
    num::NonZero,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// How long a board may say nothing before it is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often processes are asked whether they still run while nothing comes from them.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// Rounds that shadows go ahead of their boards.
const AHEAD: usize = 16;
/// Boards that compute at once, for each core of the host: enough to keep it busy, and few enough to let each go far.
const BUSY_BOARDS_PER_CORE: usize = 4;

/// Where an agent outside this process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A Cortex-M4F that QEMU emulates, with Ethernet as its radio.
    Qemu,
    /// The same with a serial line.
    QemuUart,
    /// A Linux process.
    Native,
}

impl Kind {
    /// The name in the board's `board.toml`.
    #[must_use]
    pub const fn board(self) -> &'static str {
        self.image().board
    }

    /// The word in a placement.
    const fn word(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::QemuUart => "qemu-uart",
            Self::Native => "native",
        }
    }

    /// How packets stand on its cable.
    const fn framing(self) -> Framing {
        match self {
            Self::Qemu | Self::Native => Framing::Ethernet,
            Self::QemuUart => Framing::Serial,
        }
    }

    const fn image(self) -> image::Image {
        match self {
            Self::Qemu => qemu::IMAGE,
            Self::QemuUart => qemu::UART_IMAGE,
            Self::Native => native::IMAGE,
        }
    }
}

/// The firmware that boards of a kind run in a small swarm, built unless it is fresh.
///
/// # Errors
/// When it does not build.
pub fn image(kind: Kind) -> Result<PathBuf, Error> {
    kind.image().build(1)
}

/// The emulator, and the program that counts instructions in it.
///
/// # Errors
/// When there is no emulator, or the program does not build.
pub fn counting_program() -> Result<(PathBuf, PathBuf), Error> {
    let image = qemu::COUNTING_IMAGE.build(1)?;
    Ok((qemu::program()?, image.with_file_name("instructions")))
}

/// What all boards of a kind share.
#[derive(Debug)]
struct Program {
    kind: Kind,
    image: PathBuf,
    /// The emulator, where the image does not run by itself.
    emulator: Option<PathBuf>,
    words: Option<Words>,
}

impl Program {
    fn find(kind: Kind, members: usize) -> Result<Self, Error> {
        let emulator = match kind {
            Kind::Qemu | Kind::QemuUart => Some(qemu::program()?),
            Kind::Native => None,
        };
        let image = kind.image().build(members)?;
        let words = match kind {
            Kind::Qemu | Kind::QemuUart => Some(Words::of(kind.board(), &image)?),
            Kind::Native => None,
        };
        Ok(Self { kind, image, emulator, words })
    }
}

/// A page for a board that runs one of the programs.
#[derive(Debug)]
struct Written {
    program: usize,
    agent: u16,
    page: Vec<u8>,
}

/// The boards of a swarm.
#[derive(Debug)]
pub struct Boards {
    boards: Vec<Board>,
    programs: Vec<Program>,
    poll: Poll,
    events: Events,
    hands: Hands,
    warnings: Vec<String>,
    dumps: Vec<Dump>,
    /// How many boards may compute at once.
    busy: usize,
    /// How long a board may say nothing.
    patience: Duration,
    /// Sockets, flash and logs; removed with the boards.
    folder: TempDir,
}

impl Boards {
    /// Writes a page for each agent of `task` that sits on a board, and starts those boards. Only who will be restarted with its
    /// memory saves its state every round: that takes a fifth of a round.
    ///
    /// # Errors
    /// Where the task or the swarm is too large for boards, or a board does not start.
    pub fn of(
        task: &Task<f32>,
        setup: &AgentSetup,
        seats: &[Seat],
        rounds: u32,
        will_remember: impl Fn(usize) -> bool,
    ) -> Result<Self, Error> {
        let (agents, words) = (seats.len(), task.shape().words());
        if words.max(task.problem(0).scratch_words()) > BOARD_WORDS || agents > BOARD_MEMBERS_LARGE {
            return Err(Error::TooLarge { words, agents });
        }
        let mut start = vec![0.0; words];
        task.start(&mut start);
        let page = |agent: usize, kind: Kind| Page {
            board: kind.board(),
            key: setup.key,
            agent: setup.config_of(agent, setup.config.boot),
            pace: Pace::Air,
            rounds,
            saves_state: will_remember(agent),
            start: &start,
            problem: task.problem(agent),
        };
        let pages = seats.iter().enumerate().filter_map(|(agent, seat)| match seat {
            Seat::InProcess => None,
            Seat::Board(kind) => Some((*kind, page(agent, *kind))),
        });
        Self::start(&pages.collect::<Vec<_>>())
    }

    /// Starts a board for each page and begins round 0 on all of them.
    ///
    /// # Errors
    /// Whatever keeps one of them from starting.
    pub fn start(pages: &[(Kind, Page<'_>)]) -> Result<Self, Error> {
        let mut programs: Vec<Program> = Vec::new();
        let mut written = Vec::with_capacity(pages.len());
        for (kind, page) in pages {
            let program = match programs.iter().position(|program| program.kind == *kind) {
                Some(found) => found,
                None => {
                    programs.push(Program::find(*kind, page.agent.founders.into())?);
                    programs.len() - 1
                }
            };
            written.push(Written { program, agent: page.agent.id, page: flash::page_bytes(page)? });
        }
        Self::launch(programs, &written, PATIENCE)
    }

    /// Starts a board for each page that was written, and begins round 0 on all of them.
    fn launch(programs: Vec<Program>, pages: &[Written], patience: Duration) -> Result<Self, Error> {
        let folder = tempfile::Builder::new()
            .prefix("fabswarm-")
            .tempdir()
            .map_err(|source| Error::File { path: std::env::temp_dir(), source })?;
        let poll = Poll::new().map_err(Error::Wait)?;
        let mut boards = Vec::with_capacity(pages.len());
        for (index, &Written { program, agent, ref page }) in pages.iter().enumerate() {
            let place = Place { agent, index, program, folder: folder.path() };
            boards.push(Board::start(place, &programs[program], page, &poll)?);
        }
        let events = Events::with_capacity(2 * boards.len().max(16));
        let mut boards = Self {
            boards,
            programs,
            poll,
            events,
            hands: Hands::default(),
            warnings: Vec::new(),
            dumps: Vec::new(),
            busy: BUSY_BOARDS_PER_CORE * thread::available_parallelism().map_or(1, NonZero::get),
            patience,
            folder,
        };
        boards.catch_up()?;
        Ok(boards)
    }

    /// Which agents run here.
    pub fn agents(&self) -> impl Iterator<Item = u16> + '_ {
        self.boards.iter().map(|board| board.agent)
    }

    /// What the board of `agent` must say in its shadow's present round.
    pub fn say(&mut self, agent: u16, frame: &[u8]) {
        if let Some(board) = self.find_mut(agent) {
            board.script.say(frame);
        }
    }

    /// Lets the board of `agent` hear a frame in its shadow's present round. Where a board is the sender, it must have said it.
    pub fn hear(&mut self, agent: u16, sender: u16, frame: &[u8]) {
        let Some(place) = self.place(agent) else { return };
        let source = self
            .place(sender)
            .map(|board| Speech { board, air_round: self.boards[board].script.shadow_round() });
        self.boards[place].script.hear(source, frame);
    }

    /// Ends its shadow's present round on the board of `agent`, with what the shadow came to.
    pub fn end_round(&mut self, agent: u16, digest: u32, state: Vec<u32>) {
        if let Some(board) = self.find_mut(agent) {
            board.script.end(script::End { digest, state });
        }
    }

    /// Lets boards follow their shadows, until none is too far behind.
    ///
    /// # Errors
    /// Where a board ended, fell silent, talks nonsense, or is not what its shadow is.
    pub fn follow(&mut self) -> Result<(), Error> {
        self.wait("to end a round", |board| board.script.rounds_behind() < AHEAD)
    }

    /// Waits until every board has come as far as its shadow and said what it has to say there.
    ///
    /// # Errors
    /// The same.
    pub fn catch_up(&mut self) -> Result<(), Error> {
        self.wait("to begin a round", |board| board.is_up() && board.script.rounds_behind() == 0)
    }

    /// Sets boards to work, those first that can go furthest, and none beyond round `last`.
    fn set_to_work(&mut self, last: u32) {
        let mut busy = self.boards.iter().filter(|board| board.script.is_under_way()).count();
        while busy < self.busy {
            let has_spoken = |speech: Speech| self.boards[speech.board].has_spoken(speech.air_round);
            let idle = self.boards.iter().enumerate().filter(|(_, board)| {
                board.is_up() && !board.is_away() && !board.script.is_under_way() && board.parting.is_none()
            });
            let able =
                idle.map(|(place, board)| (board.script.ready(last, has_spoken), scatter(place), place));
            let Some((turns, _, place)) = able.max().filter(|&(turns, ..)| turns > 0) else { return };
            self.boards[place].grant(turns);
            busy += 1;
        }
    }

    /// Who was the first not to be what its shadow is.
    fn first_parting(&self) -> Option<(u16, Parting)> {
        let partings = self.boards.iter().filter_map(|board| Some((board.agent, board.parting.clone()?)));
        partings.min_by_key(|(_, parting)| parting.air_round)
    }

    /// Says how the board of `agent` parted from its shadow. Where it is held in another state, both states are kept for the run
    /// folder.
    fn explain(&mut self, agent: u16, Parting { round, difference, .. }: Parting) -> Error {
        match difference {
            Difference::Words(words) => Error::OtherWords { agent, round, words },
            Difference::State { board, shadow } => {
                let told = self.state_of(agent);
                let expected = self.find(agent).map(|board| board.shadow().to_vec()).unwrap_or_default();
                let dump = Dump { agent, round, board: told, shadow: expected };
                let difference = dump.to_string();
                self.dumps.push(dump);
                Error::Mismatch { agent, round, board, shadow, difference }
            }
        }
    }

    /// What the board of `agent` says its state is.
    fn state_of(&mut self, agent: u16) -> Result<Vec<u32>, Error> {
        let mut state = Vec::new();
        loop {
            if let Some(board) = self.find_mut(agent) {
                board.ask_for_state(state.len() as u32);
            }
            let asked = Instant::now();
            while !self.boards.iter().all(Board::has_told) {
                self.serve(asked, "to tell its state")?;
            }
            match self.find_mut(agent).and_then(Board::take_told) {
                Some(words) if !words.is_empty() => state.extend(words),
                _ => return Ok(state),
            }
        }
    }

    /// Starts a killed board again, to join in `air_round` with the state it had stored or without.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    pub fn restart(&mut self, agent: u16, air_round: u32, keeps_memory: bool) -> Result<(), Error> {
        if let Some(place) = self.place(agent) {
            let board = &mut self.boards[place];
            // The new process begins its log anew.
            board.read_log(self.programs[board.program()].words.as_ref(), &mut self.warnings);
            board.restart(&self.programs[board.program()], air_round, keeps_memory)?;
        }
        Ok(())
    }

    /// What boards logged at warning level since the last call, each with its agent.
    pub fn take_warnings(&mut self) -> Vec<String> {
        for board in &mut self.boards {
            board.read_log(self.programs[board.program()].words.as_ref(), &mut self.warnings);
        }
        std::mem::take(&mut self.warnings)
    }

    /// Copies the boards' logs into `folder`.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for agent in self.agents() {
            let name = board::log_name(agent);
            fs::copy(self.folder.path().join(&name), folder.join(&name))?;
        }
        self.dumps.iter().try_for_each(|dump| dump.write(folder))
    }

    /// Boards stand in the order of their agents.
    fn place(&self, agent: u16) -> Option<usize> {
        self.boards.binary_search_by_key(&agent, |board| board.agent).ok()
    }

    fn find(&self, agent: u16) -> Option<&Board> {
        self.place(agent).map(|place| &self.boards[place])
    }

    fn find_mut(&mut self, agent: u16) -> Option<&mut Board> {
        self.place(agent).map(|place| &mut self.boards[place])
    }

    /// Sets boards to work until `is_done` holds for every one that is there.
    fn wait(&mut self, what_for: &str, is_done: impl Fn(&Board) -> bool) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            let parting = self.first_parting();
            // Boards that are behind may yet part from their shadows in an earlier round.
            self.set_to_work(parting.as_ref().map_or(u32::MAX, |(_, parting)| parting.air_round));
            match parting {
                Some((agent, parting)) if !self.boards.iter().any(Board::is_awaited) => {
                    return Err(self.explain(agent, parting));
                }
                None if self.boards.iter().all(|board| board.is_away() || is_done(board)) => return Ok(()),
                _ => {}
            }
            self.serve(begun, what_for)?;
        }
    }

    /// Sends what waits to be sent and takes what comes next.
    fn serve(&mut self, begun: Instant, what_for: &str) -> Result<(), Error> {
        for board in &mut self.boards {
            board.flush(&self.poll);
        }
        match self.poll.poll(&mut self.events, Some(CHECK_EVERY)) {
            // Ctrl-C lets the boards finish their round; the run then ends in order.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            outcome => outcome.map_err(Error::Wait)?,
        }
        for event in &self.events {
            let index = event.token().0 / board::TOKENS_EACH;
            if let Some(board) = self.boards.get_mut(index) {
                board.serve(event.token(), &self.poll, &mut self.hands)?;
            }
        }
        if self.events.is_empty() { self.find_the_lost(begun, what_for) } else { Ok(()) }
    }

    /// Names a board that will not answer any more.
    fn find_the_lost(&mut self, begun: Instant, what_for: &str) -> Result<(), Error> {
        for board in self.boards.iter_mut().filter(|board| board.is_awaited()) {
            if let Some(how) = board.ended() {
                board.read_log(self.programs[board.program()].words.as_ref(), &mut self.warnings);
                return Err(Error::Ended { agent: board.agent, how, messages: board.last_words() });
            }
            if begun.elapsed() > self.patience {
                let when = format!("when it was {what_for}");
                return Err(Error::Silent { agent: board.agent, after: self.patience, when });
            }
            board.ask_again();
        }
        Ok(())
    }
}

/// An order in which neighbours are far apart: of boards that can go equally far, those that start together should not wait for
/// each other's words.
const fn scatter(place: usize) -> u32 {
    (place as u32).wrapping_mul(0x9E37_79B1)
}

#[cfg(test)]
mod tests;
