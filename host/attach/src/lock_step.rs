//! Boards in lock-step with their shadows: shadows go first, and the host grants boards the rounds to follow in.

mod board;
mod follow;
mod remote;
mod round_queue;

use crate::compare::FilePair;
use crate::fleet::{Fleet, Launcher};
use crate::machine::BoardLink;
use crate::placement::AgentLocation;
use board::LockStepBoard;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::wire::seal::Key;
use fabswarm_sim::swarm::{BoardChange, ReadingLog, SwarmError};
use std::time::Instant;

/// The boards of a swarm, each beside its shadow.
#[derive(Debug)]
pub(crate) struct LockStepBoards {
    pub(crate) fleet: Fleet<LockStepBoard>,
    /// Changes of boards that the swarm has not taken yet.
    changes: Vec<BoardChange>,
    readings: ReadingLog,
    /// States or frames of boards that differ from their shadows'.
    differing: Vec<FilePair>,
    /// Opens frames.
    key: Option<Key>,
    slot: u32,
    busy_limit: usize,
    /// When a packet last arrived, or the host began to wait for one.
    progressed: Instant,
    /// When the host last checked the awaited boards, or had no reason to.
    checked: Instant,
    is_wait_announced: bool,
}

impl LockStepBoards {
    /// Starts the boards, and waits until all of them are in round 0. Only agents that will be restarted with their memory save their state
    /// every round, which takes a fifth of a round.
    pub(crate) fn start(launcher: &Launcher) -> Result<Self, SwarmError> {
        let mut on_ports =
            (0..).zip(launcher.locations).filter(|(_, location)| **location == AgentLocation::Serial);
        if let Some((agent, _)) = on_ports.find(|(agent, _)| (launcher.saves_state)(*agent)) {
            return Err(Diagnostic::new(
                format!(
                    "faults.crashes lets agent {agent} keep its memory, and a board on a serial port would have to write its flash in every round"
                ),
                "write `forgets` behind its crash, or place the agent elsewhere",
            )
            .into());
        }
        let mut boards = Self::follow_from_start(launcher.launch(LockStepBoard::new)?)?;
        boards.key = launcher.pages.setup.key.as_ref().map(|key| Key::new(key.bytes()));
        Ok(boards)
    }

    /// Waits until all boards are in round 0.
    fn follow_from_start(fleet: Fleet<LockStepBoard>) -> Result<Self, SwarmError> {
        let mut boards = Self {
            fleet,
            changes: Vec::new(),
            readings: ReadingLog::default(),
            differing: Vec::new(),
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

    fn index_of(&self, agent: u16) -> Option<usize> {
        self.fleet.boards.binary_search_by_key(&agent, |board| board.link.agent).ok()
    }

    fn find(&self, agent: u16) -> Option<&LockStepBoard> {
        self.index_of(agent).map(|index| &self.fleet.boards[index])
    }

    fn find_mut(&mut self, agent: u16) -> Option<&mut LockStepBoard> {
        self.index_of(agent).map(|index| &mut self.fleet.boards[index])
    }
}

impl AsMut<BoardLink> for LockStepBoard {
    fn as_mut(&mut self) -> &mut BoardLink {
        &mut self.link
    }
}

#[cfg(test)]
mod tests;
