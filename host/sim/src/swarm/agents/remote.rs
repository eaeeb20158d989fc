//! Agents that run outside this process.

use crate::swarm::{BoardView, SwarmError};
use std::path::Path;
use std::{fmt, io};

/// Comparisons of boards with their shadows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigestCounts {
    /// Digests compared.
    pub checks: u64,
    /// Digests that differed.
    pub mismatches: u64,
}

/// An event of a board that the scenario does not plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardChange {
    /// It is gone, and its memory with it.
    Lost {
        /// Its agent.
        agent: usize,
    },
    /// It is there again and waits for [`Remote::restart`].
    Returned {
        /// Its agent.
        agent: usize,
        /// Its boot.
        boot: u32,
    },
}

/// The end of a round of a board's shadow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShadowRound {
    /// The digest of its state.
    pub digest: u32,
    /// How many others it heard in the round.
    pub heard: u16,
    /// Frames that it refused since its last round ended; `None` where frames reach it otherwise than a board.
    pub refused: Option<u32>,
    /// Its whole state.
    pub state: Vec<u32>,
}

/// A warning or error that a board logged, or an event that the host noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardWarning {
    /// The agent on the board.
    pub agent: usize,
    /// The event, in one line.
    pub text: String,
}

impl fmt::Display for BoardWarning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "agent {}: {}", self.agent, self.text)
    }
}

/// Logs, warnings and measurements of a swarm's boards.
pub trait BoardReports {
    /// Comparisons of boards with their shadows so far.
    fn digests(&self) -> DigestCounts;

    /// The most stack that a board has used so far, in bytes, if any board measures it.
    fn deepest_stack_bytes(&self) -> Option<u32>;

    /// Adds everything that the board of `agent` logs to what [`take_warnings`](Self::take_warnings) returns.
    fn follow_log(&mut self, agent: usize);

    /// Returns the warnings since the last call.
    fn take_warnings(&mut self) -> Vec<BoardWarning>;

    /// Copies the logs of boards into a folder.
    ///
    /// # Errors
    /// If they cannot be read or written.
    fn keep_logs(&mut self, folder: &Path) -> io::Result<()>;
}

/// Boards that run some agents of a swarm.
///
/// The agents with the same numbers in this process are their shadows. Shadows go first; boards follow, and must send the same frames
/// and reach the same state, bit for bit. A board receives a frame of another board only after that board has sent it.
///
/// # Errors
/// Methods that wait for a board fail if it is lost or diverges from its shadow.
pub trait Remote: BoardReports + fmt::Debug {
    /// Whether `agent` runs on a board.
    fn is_remote(&self, agent: usize) -> bool;

    /// Kills a board once it has caught up with its shadow, and erases its stored state unless `keeps_memory`.
    fn kill(&mut self, agent: usize, keeps_memory: bool) -> Result<(), SwarmError>;

    /// Restarts a killed board in `round`, with the state it has stored.
    ///
    /// # Errors
    /// If it does not start.
    fn restart(&mut self, agent: usize, round: u32) -> Result<(), SwarmError>;

    /// Returns what happened to boards since the last call.
    fn take_changes(&mut self) -> Vec<BoardChange>;

    /// Suspends a board once it has caught up with its shadow.
    fn freeze(&mut self, agent: usize) -> Result<(), SwarmError>;

    /// Resumes a frozen board.
    fn thaw(&mut self, agent: usize);

    /// Records a frame that the shadow of a board sent.
    fn shadow_sent(&mut self, agent: usize, frame: &[u8]);

    /// Records a frame that the shadow of a board received.
    fn shadow_received(&mut self, agent: usize, sender: usize, frame: &[u8]);

    /// Returns the fresh reading that a board takes in its present round, if it has a sensor; waits until the board is in that round.
    fn reading(&mut self, agent: usize) -> Result<Option<f32>, SwarmError>;

    /// Records the end of a round of a board's shadow.
    fn shadow_ended_round(&mut self, agent: usize, round: ShadowRound);

    /// Lets boards follow their shadows until none is too far behind.
    fn follow(&mut self) -> Result<(), SwarmError>;

    /// Waits until all boards have caught up with their shadows.
    fn catch_up(&mut self) -> Result<(), SwarmError>;

    /// The state of the board of `agent`, if it runs on one.
    fn board(&self, _agent: usize) -> Option<BoardView> {
        None
    }
}
