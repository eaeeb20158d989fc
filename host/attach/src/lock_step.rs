//! Boards in lock-step with their shadows: shadows go first, and the host grants boards the rounds to follow in.

mod board;
mod follow;
mod remote;
mod round_queue;

use crate::compare::divergence::FramePair;
use crate::compare::state_dump::StateDump;
use crate::firmware::check_sizes;
use crate::fleet::{Fleet, Launcher};
use crate::machine::BoardLink;
use crate::provision::page::PageMaker;
use crate::{AgentLocation, BoardKind, Error};
use board::Board;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::provisioning::Pace;
use fabswarm_shared::wire::seal::Key;
use fabswarm_sim::scenario::LostBoards;
use fabswarm_sim::swarm::{AgentSetup, BoardChange};
use fabswarm_sim::task::Task;
use std::path::Path;
use std::sync::{Arc, atomic::AtomicBool};
use std::time::Instant;
use std::{fs, io};

/// The boards of a swarm, each beside its shadow.
#[derive(Debug)]
pub(crate) struct LockStepBoards {
    fleet: Fleet<Board>,
    /// What happened to boards since the swarm was told last.
    changes: Vec<BoardChange>,
    dumps: Vec<StateDump>,
    /// Frames of boards that differ from their shadows', with agents and rounds.
    differing_frames: Vec<(u16, u32, FramePair)>,
    /// Opens them.
    key: Option<Key>,
    /// The air's slot that the shadows are in.
    slot: u32,
    /// How many boards may compute at once.
    busy_limit: usize,
    /// When a packet last arrived, or the host began to wait for one.
    progressed: Instant,
    /// When the host last looked whether awaited boards are still there, or had no reason to.
    checked: Instant,
    /// Whether the user was told which boards the host waits for.
    is_wait_announced: bool,
}

impl LockStepBoards {
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
        let pages = PageMaker::new(task, setup, Pace::Air, rounds);
        let saves_state = &will_remember;
        let launcher = Launcher { pages, needs, locations, serial_pattern, radio: None, saves_state };
        let boards = Self::follow_from_start(launcher.launch(Board::new)?)?;
        Ok(Self { key: setup.key.as_ref().map(|key| Key::new(key.bytes())), ..boards })
    }

    /// Sets what happens when a board is lost.
    #[must_use]
    pub(crate) fn with_lost_boards(mut self, lost_boards: LostBoards) -> Self {
        self.fleet.lost_boards = lost_boards;
        self
    }

    /// Ends waits for boards that do not answer once `interrupted` is set.
    #[must_use]
    pub(crate) fn with_interrupt(mut self, interrupted: Arc<AtomicBool>) -> Self {
        self.fleet.interrupted = interrupted;
        self
    }

    /// Waits until all boards are in round 0.
    fn follow_from_start(fleet: Fleet<Board>) -> Result<Self, Error> {
        let mut boards = Self {
            fleet,
            changes: Vec::new(),
            dumps: Vec::new(),
            differing_frames: Vec::new(),
            key: None,
            slot: 0,
            busy_limit: follow::busy_limit(),
            progressed: Instant::now(),
            checked: Instant::now(),
            is_wait_announced: false,
        };
        boards.catch_up()?;
        Ok(boards)
    }

    /// Restarts a killed board, which joins in `air_round` with the state it has stored.
    fn restart(&mut self, agent: u16, air_round: u32) -> Result<(), Diagnostic> {
        if let Some(index) = self.index_of(agent) {
            // The new process truncates the log.
            self.fleet.read_log(index);
            self.fleet.boards[index].restart(air_round)?;
        }
        Ok(())
    }

    /// Copies the boards' logs, and the states of any that diverged, into `folder`.
    fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        self.fleet.keep_logs(folder)?;
        for (agent, round, frames) in &self.differing_frames {
            frames.write(folder, *agent, *round, self.key.as_ref())?;
        }
        // Debugging a fault takes the image that had it.
        let firmware = self.fleet.boards.iter().filter_map(|board| board.link.machine.firmware());
        for firmware in firmware.filter(|firmware| firmware.kind != BoardKind::Native) {
            let copy = folder.join(format!("{}.elf", firmware.kind.name()));
            if !self.fleet.events.is_empty() && !copy.exists() {
                fs::copy(&firmware.image, copy)?;
            }
        }
        self.dumps.iter().try_for_each(|dump| dump.write(folder))
    }

    fn index_of(&self, agent: u16) -> Option<usize> {
        self.fleet.boards.binary_search_by_key(&agent, |board| board.link.agent).ok()
    }

    fn find(&self, agent: u16) -> Option<&Board> {
        self.index_of(agent).map(|index| &self.fleet.boards[index])
    }

    fn find_mut(&mut self, agent: u16) -> Option<&mut Board> {
        self.index_of(agent).map(|index| &mut self.fleet.boards[index])
    }
}

impl AsMut<BoardLink> for Board {
    fn as_mut(&mut self) -> &mut BoardLink {
        &mut self.link
    }
}

#[cfg(test)]
mod tests;
