//! Boards in lock-step with their shadows: shadows go first, and the host grants boards the rounds to follow in.

mod board;
mod follow;
mod remote;
mod round_queue;

use crate::compare::divergence::FramePair;
use crate::compare::state_dump::StateDump;
use crate::firmware::check_sizes;
use crate::fleet::{Fleet, Launcher};
use crate::machine::{BoardLink, cable_faults::CableFaults, rig::Rig};
use crate::provision::page::PageMaker;
use crate::{AgentLocation, Error};
use board::LockStepBoard;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::provisioning::Pace;
use fabswarm_shared::wire::seal::Key;
use fabswarm_sim::swarm::{AgentSwarmConfig, BoardChange, ReadingLog};
use fabswarm_sim::task::Task;
use std::time::Instant;

/// The boards of a swarm, each beside its shadow.
#[derive(Debug)]
pub(crate) struct LockStepBoards {
    pub(crate) fleet: Fleet<LockStepBoard>,
    /// Changes of boards that the swarm has not taken yet.
    changes: Vec<BoardChange>,
    dumps: Vec<StateDump>,
    readings: ReadingLog,
    /// Frames of boards that differ from their shadows', with agents and rounds.
    differing_frames: Vec<(u16, u32, FramePair)>,
    /// Opens them.
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
    /// Starts a board for each agent that `locations` places on one. Only agents for which `will_remember` holds save their state
    /// every round, which takes a fifth of a round: those that will be restarted with their memory. Real boards are those on the
    /// serial ports that `serial_pattern` matches, in the order of their chips; each gets a page for its chip. With a `rig`, crashes cut their
    /// power.
    pub(crate) fn start(
        task: &Task<f32>,
        setup: &AgentSwarmConfig,
        locations: &[AgentLocation],
        rounds: u32,
        will_remember: impl Fn(usize) -> bool,
        serial_pattern: Option<&str>,
        (rig, faults): (Option<&Rig>, Option<CableFaults>),
    ) -> Result<Self, Error> {
        let needs = check_sizes(task, locations.len())?;
        let forgets = |(_, location): &(usize, &AgentLocation)| **location == AgentLocation::Serial;
        let remembering =
            locations.iter().enumerate().filter(forgets).find(|(agent, _)| will_remember(*agent));
        if let Some((agent, _)) = remembering {
            return Err(Diagnostic::new(
                format!(
                    "faults.crashes lets agent {agent} keep its memory, and a board on a serial port would have to write its flash in every round"
                ),
                "write `forgets` behind its crash, or place the agent elsewhere",
            )
            .into());
        }
        let pages = PageMaker::new(task, setup, Pace::Air, rounds);
        let saves_state = &will_remember;
        let launcher =
            Launcher { pages, needs, locations, serial_pattern, rig, faults, radio: None, saves_state };
        let boards = Self::follow_from_start(launcher.launch(LockStepBoard::new)?)?;
        Ok(Self { key: setup.key.as_ref().map(|key| Key::new(key.bytes())), ..boards })
    }

    /// Waits until all boards are in round 0.
    fn follow_from_start(fleet: Fleet<LockStepBoard>) -> Result<Self, Error> {
        let mut boards = Self {
            fleet,
            changes: Vec::new(),
            dumps: Vec::new(),
            readings: ReadingLog::default(),
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
