//! Boards in lock-step with their shadows.

pub(crate) mod board;
mod follow;
mod remote;
mod round_queue;

use crate::compare::divergence::FramePair;
use crate::compare::state_dump::StateDump;
use crate::error;
use crate::firmware::{Firmware, check_sizes};
use crate::fleet::events::EventLog;
use crate::fleet::launch::{self, BoardPage, Fleet, PageMaker};
use crate::machine::board_machine;
use crate::machine::temp_dir::LockedTempDir;
use crate::{AgentLocation, BoardKind, Error};
use board::{Board, ReceiveBuffers};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::provisioning::Pace;
use fabswarm_shared::wire::seal::Key;
use fabswarm_sim::scenario::LostBoards;
use fabswarm_sim::swarm::{AgentSetup, BoardChange};
use fabswarm_sim::task::Task;
use mio::{Events, Poll};
use std::path::Path;
use std::sync::{Arc, atomic::AtomicBool};
use std::time::{Duration, Instant};
use std::{fs, io};

/// How long a board that owes an answer may be silent before the run fails.
pub(crate) const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// The boards of a swarm.
#[derive(Debug)]
pub(crate) struct Boards {
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
    pub(crate) fn start(
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
    pub(crate) const fn with_lost_boards(mut self, lost_boards: LostBoards) -> Self {
        self.lost_boards = lost_boards;
        self
    }

    /// Ends waits for boards that do not answer once `interrupted` is set.
    #[must_use]
    pub(crate) fn with_interrupt(mut self, interrupted: Arc<AtomicBool>) -> Self {
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

#[cfg(test)]
mod tests;
