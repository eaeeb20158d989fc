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
mod build;
mod cable;
mod desk;
mod dump;
mod error;
mod flash;
mod follow;
mod image;
mod log;
mod machine;
mod native;
mod parting;
mod placement;
mod process;
mod qemu;
mod remote;
mod script;

pub use build::{BuildError, build};
pub use error::Error;
pub use placement::{Placement, PlacementError, Seat};

use board::{Board, Hands};
use cable::Framing;
use desk::Desk;
use dump::Dump;
use fabswarm_shared::problem::Problem;
use fabswarm_shared::provisioning::{BOARD_MEMBERS_LARGE, BOARD_WORDS, Pace, Page};
use fabswarm_sim::swarm::AgentSetup;
use fabswarm_sim::task::Task;
use log::Words;
use machine::Place;
use mio::{Events, Poll};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a board may say nothing before it is given up.
const PATIENCE: Duration = Duration::from_secs(30);
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
    /// The air's slot that shadows are in.
    slot: u32,
    /// How many boards may compute at once.
    busy: usize,
    /// How long a board may say nothing.
    patience: Duration,
    /// Sockets, flash and logs; removed with the boards.
    desk: Desk,
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
        if agents > BOARD_MEMBERS_LARGE {
            return Err(Error::TooMany { agents });
        }
        let needed = words.max(task.problem(0).scratch_words());
        if needed > BOARD_WORDS {
            return Err(Error::TooLarge { words: needed });
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
    fn start(pages: &[(Kind, Page<'_>)]) -> Result<Self, Error> {
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
        let desk = Desk::new()?;
        let poll = Poll::new().map_err(Error::Wait)?;
        let mut boards = Vec::with_capacity(pages.len());
        for (index, &Written { program, agent, ref page }) in pages.iter().enumerate() {
            let place = Place { agent, index, program, folder: desk.path() };
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
            slot: 0,
            busy: follow::busy_boards(),
            patience,
            desk,
        };
        boards.catch_up()?;
        Ok(boards)
    }

    /// Which agents run here.
    fn agents(&self) -> impl Iterator<Item = u16> + '_ {
        self.boards.iter().map(|board| board.agent)
    }

    /// Starts a killed board again, to join in `air_round` with the state it has stored.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    fn restart(&mut self, agent: u16, air_round: u32) -> Result<(), Error> {
        if let Some(place) = self.place(agent) {
            let board = &mut self.boards[place];
            // The new process begins its log anew.
            board.machine.read_log(&self.programs, &mut self.warnings);
            board.restart(&self.programs[board.machine.program()], air_round)?;
        }
        Ok(())
    }

    /// What boards logged at warning level since the last call, each with its agent.
    fn take_warnings(&mut self) -> Vec<String> {
        for board in &mut self.boards {
            board.machine.read_log(&self.programs, &mut self.warnings);
        }
        std::mem::take(&mut self.warnings)
    }

    /// Copies the boards' logs into `folder`.
    ///
    /// # Errors
    /// When they cannot be written.
    fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for agent in self.agents() {
            let name = machine::log_name(agent);
            fs::copy(self.desk.path().join(&name), folder.join(&name))?;
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
}

#[cfg(test)]
mod tests;
