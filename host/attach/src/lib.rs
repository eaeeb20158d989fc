//! Boards in the loop: agents that run outside this process, each on an emulated or native board.
//!
//! The host starts the boards, carries their frames and receives their telemetry. Every agent on a board has a shadow: the same
//! agent in this process, which the board must match bit for bit. A round of a board:
//!
//! ```text
//!   board                                     host
//!     │ boot (repeated until answered) ───────▶ │  the expected board, with the expected page?
//!     │ ◀──────────────────────────── start(k) │
//!     │ frames of round k, telemetry ─────────▶ │  the same frames as its shadow's?
//!     │ ◀──── frames it receives, round over(k) │
//!     │ frames of k+1, telemetry of round k ──▶ │  the same digest as its shadow's?
//! ```
//!
//! Shadows go first and boards follow. A board may go through a round as soon as the boards it receives frames from have sent
//! them. It need not wait for the whole swarm: in sparse graphs it goes through several rounds at once, while its code is in the
//! host's caches. Either way it receives the same frames in the same rounds.
//!
//! [`build`] makes a swarm from a scenario, with every agent where the key `swarm.boards` places it (see [`Placement`]):
//!
//! ```no_run
//! use fabswarm_sim::{scenario::Scenario, swarm::Swarm};
//! use std::sync::{Arc, atomic::AtomicBool};
//!
//! let mut scenario = Scenario::default();
//! scenario.swarm.boards = "native:2,in-process".to_owned();
//! // Set it to end a wait for boards that do not answer.
//! let interrupted = Arc::new(AtomicBool::new(false));
//! let mut swarm = fabswarm_attach::build(&scenario, &interrupted)?;
//! for _ in 0..100 {
//!     swarm.step()?;
//! }
//! swarm.finish()?;
//! assert_eq!(swarm.digests().mismatches, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Linux only. Firmware is built on demand from the source tree that this crate was built in.

mod board;
mod board_file;
mod board_kind;
mod board_log;
mod board_machine;
mod boot_check;
mod boot_records;
mod build;
mod cable;
mod child_process;
mod code_place;
mod divergence;
mod error;
mod events;
mod firmware;
mod firmware_crate;
mod flash_file;
mod flight;
mod follow;
mod frame_fields;
mod launch;
mod native;
mod packet_stream;
mod pico;
mod placement;
mod qemu;
mod remote;
mod round_queue;
pub mod serial;
mod state_dump;
mod swarm_file;
mod swarm_plan;
mod temp_dir;
pub mod uf2;

pub use board_file::{BoardFile, names as board_names};
pub use board_kind::{BoardKind, counting_program, image};
pub use board_log::LogDecoder;
pub use boot_check::last_panic;
pub use build::{build, build_shadows, build_with, start_block};
pub use error::Error;
pub use fabswarm_board_file::{ImageFormat, Uf2Drive};
pub use fabswarm_flash::{ChipFacts, ChipPage, FlashImage};
pub use fabswarm_shared::{BUILD_ID, packet};
pub use flight::{FlightEntry, FlightFault, FlightVerdict, ReportGap, RoundFate, verify};
pub use placement::{AgentLocation, Placement};
pub use swarm_file::{SwarmFile, SwarmPages};
pub use swarm_plan::{BoardRoom, SwarmPlan, WidthPlan};

use board::{Board, ReceiveBuffers};
use divergence::FramePair;
use events::EventLog;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::provisioning::{BOARD_MEMBERS_LARGE, Pace};
use fabswarm_shared::wire::seal::Key;
use fabswarm_sim::scenario::LostBoards;
use fabswarm_sim::swarm::{AgentSetup, BoardChange};
use fabswarm_sim::task::Task;
use firmware::Firmware;
use firmware_crate::FirmwareNeeds;
use launch::{BoardPage, Fleet, PageMaker};
use mio::{Events, Poll};
use state_dump::StateDump;
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};
use temp_dir::LockedTempDir;

/// How long a board that owes an answer may be silent before the run fails.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// The boards of a swarm.
#[derive(Debug)]
pub struct Boards {
    /// In the order of their agents.
    boards: Vec<Board>,
    /// One per kind of board in use.
    firmware: Vec<Firmware>,
    poll: Poll,
    events: Events,
    buffers: ReceiveBuffers,
    warnings: Vec<String>,
    /// What happened to boards since the swarm was told last.
    changes: Vec<BoardChange>,
    lost_boards: LostBoards,
    /// When the host last looked for lost boards.
    recalled: Instant,
    dumps: Vec<StateDump>,
    /// Frames of boards that differ from their shadows', with agents and rounds.
    differing_frames: Vec<(u16, u32, FramePair)>,
    /// Opens them.
    key: Option<Key>,
    event_log: EventLog,
    /// The air's slot that the shadows are in.
    slot: u32,
    /// How many boards may compute at once.
    busy_limit: usize,
    silence_limit: Duration,
    /// When a packet last arrived, or the host began to wait for one.
    progressed: Instant,
    /// When the host last looked whether awaited boards are still there, or had no reason to.
    checked: Instant,
    /// Whether the user was told which boards the host waits for.
    is_wait_announced: bool,
    /// Ends a wait for boards that do not answer.
    interrupted: Arc<AtomicBool>,
    /// Holds sockets, flash and logs; removed when the boards are dropped, hence the last field.
    temp_dir: LockedTempDir,
}

impl Boards {
    /// Starts a board for each agent that `locations` places on one. Only agents for which `will_remember` holds save their state
    /// every round, which takes a fifth of a round: those that will be restarted with their memory. Real boards are those on the
    /// serial ports that `serial_pattern` matches, in the order of their chips; each gets a page for its chip.
    ///
    /// # Errors
    /// If the swarm or the task is too large for boards, or a board does not start.
    pub fn start(
        task: &Task<f32>,
        setup: &AgentSetup,
        locations: &[AgentLocation],
        rounds: u32,
        will_remember: impl Fn(usize) -> bool,
        serial_pattern: Option<&str>,
    ) -> Result<Self, Error> {
        let needs = check_sizes(task, locations.len())?;
        let forgets = |(_, location): &(usize, &AgentLocation)| **location == AgentLocation::Serial;
        let remembering =
            locations.iter().enumerate().filter(forgets).find(|(agent, _)| will_remember(*agent));
        if let Some((agent, _)) = remembering {
            return Err(Diagnostic::new(
                format!(
                    "faults.crashes lets agent {agent} keep its memory, and a board on a serial port cannot be cut off its power"
                ),
                "write `forgets` behind its crash, or place the agent elsewhere",
            )
            .into());
        }
        let fleet = Fleet {
            pages: PageMaker::new(task, setup, Pace::Air, rounds),
            locations,
            serial_pattern,
            radio: None,
            saves_state: &will_remember,
        };
        let (firmware, pages) = fleet.prepare(&needs)?;
        let boards = Self::launch(firmware, &pages, SILENCE_LIMIT)?;
        Ok(Self { key: setup.key.as_ref().map(|key| Key::new(key.bytes())), ..boards })
    }

    /// Sets what happens when a board is lost.
    #[must_use]
    pub const fn with_lost_boards(mut self, lost_boards: LostBoards) -> Self {
        self.lost_boards = lost_boards;
        self
    }

    /// Ends waits for boards that do not answer once `interrupted` is set.
    #[must_use]
    pub fn with_interrupt(mut self, interrupted: Arc<AtomicBool>) -> Self {
        self.interrupted = interrupted;
        self
    }

    /// Starts a board for each page and waits until all of them are in round 0.
    fn launch(firmware: Vec<Firmware>, pages: &[BoardPage], silence_limit: Duration) -> Result<Self, Error> {
        let temp_dir = LockedTempDir::new()?;
        let poll = Poll::new().map_err(error::wait)?;
        let machines = launch::machines(&firmware, pages, temp_dir.path(), &poll)?;
        let boards =
            pages.iter().zip(machines).map(|(page, machine)| Board::new(page.agent, machine)).collect();
        let mut boards = Self::new(boards, firmware, poll, temp_dir);
        boards.silence_limit = silence_limit;
        boards.catch_up()?;
        Ok(boards)
    }

    /// Boards that have not said anything yet.
    fn new(boards: Vec<Board>, firmware: Vec<Firmware>, poll: Poll, temp_dir: LockedTempDir) -> Self {
        Self {
            events: Events::with_capacity(2 * boards.len().max(16)),
            boards,
            firmware,
            poll,
            buffers: ReceiveBuffers::default(),
            warnings: Vec::new(),
            changes: Vec::new(),
            lost_boards: LostBoards::Rejoin,
            recalled: Instant::now(),
            dumps: Vec::new(),
            differing_frames: Vec::new(),
            key: None,
            event_log: EventLog::default(),
            slot: 0,
            busy_limit: follow::busy_limit(),
            silence_limit: SILENCE_LIMIT,
            progressed: Instant::now(),
            checked: Instant::now(),
            is_wait_announced: false,
            interrupted: Arc::default(),
            temp_dir,
        }
    }

    /// The agents that run on boards.
    fn agents(&self) -> impl Iterator<Item = u16> + '_ {
        self.boards.iter().map(|board| board.agent)
    }

    /// Restarts a killed board, which joins in `air_round` with the state it has stored.
    fn restart(&mut self, agent: u16, air_round: u32) -> Result<(), Diagnostic> {
        if let Some(index) = self.index_of(agent) {
            let board = &mut self.boards[index];
            // The new process truncates the log.
            board.machine.read_log(&self.firmware, &mut self.warnings);
            board.restart(&self.firmware, air_round)?;
        }
        Ok(())
    }

    /// Returns what boards logged at level warn or error since the last call, each with its agent.
    fn take_warnings(&mut self) -> Vec<String> {
        for board in &mut self.boards {
            board.machine.read_log(&self.firmware, &mut self.warnings);
        }
        std::mem::take(&mut self.warnings)
    }

    /// Copies the boards' logs, and the states of any that diverged, into `folder`.
    fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for agent in self.agents() {
            let name = board_machine::log_name(agent);
            fs::copy(self.temp_dir.path().join(&name), folder.join(&name))?;
        }
        for (agent, round, frames) in &self.differing_frames {
            frames.write(folder, *agent, *round, self.key.as_ref())?;
        }
        // Whoever looks for a fault needs the image that had it.
        if !self.event_log.is_empty() {
            for firmware in self.firmware.iter().filter(|firmware| firmware.kind != BoardKind::Native) {
                fs::copy(&firmware.image, folder.join(format!("{}.elf", firmware.kind.name())))?;
            }
        }
        self.event_log.write(folder)?;
        self.dumps.iter().try_for_each(|dump| dump.write(folder))
    }

    fn index_of(&self, agent: u16) -> Option<usize> {
        self.boards.binary_search_by_key(&agent, |board| board.agent).ok()
    }

    fn find(&self, agent: u16) -> Option<&Board> {
        self.index_of(agent).map(|index| &self.boards[index])
    }

    fn find_mut(&mut self, agent: u16) -> Option<&mut Board> {
        self.index_of(agent).map(|index| &mut self.boards[index])
    }
}

/// The path of a program that the user's PATH leads to.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Most words of a decision, or of a problem's working memory, that boards can be built for.
const MOST_WORDS: usize = 512;

/// Checks that boards can be built for a task and a swarm, and returns what their firmware must have room for.
fn check_sizes(task: &Task<f32>, agents: usize) -> Result<FirmwareNeeds, Diagnostic> {
    if agents > BOARD_MEMBERS_LARGE {
        return Err(Diagnostic::new(
            format!("the swarm has {agents} agents, and boards are built for {BOARD_MEMBERS_LARGE}"),
            "lower swarm.agents, or set swarm.boards to \"in-process\"",
        ));
    }
    let needs = FirmwareNeeds::of(task, agents);
    if needs.words > MOST_WORDS {
        return Err(Diagnostic::new(
            format!("the task takes {} words, and boards are built for up to {MOST_WORDS}", needs.words),
            "lower the sizes of the problem (its features, classes or states), or set swarm.boards to \"in-process\"",
        ));
    }
    Ok(needs)
}

#[cfg(test)]
mod tests;
