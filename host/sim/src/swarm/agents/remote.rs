//! Agents that run outside this process.

use crate::swarm::SwarmError;
use std::io;
use std::path::Path;

/// Comparisons of boards with their shadows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigestCounts {
    /// Digests compared.
    pub checks: u64,
    /// Digests that differed.
    pub mismatches: u64,
}

/// Boards that run some agents of a swarm.
///
/// The in-process agents with the same numbers are their shadows. Shadows go first; boards follow and must send the same frames
/// and reach the same states. A frame reaches a board only after its sender, if that is a board, has sent it too.
pub trait Remote: std::fmt::Debug {
    /// Whether `agent` runs on a board.
    fn is_remote(&self, agent: usize) -> bool;

    /// Cuts the power of a board once it has caught up with its shadow; its storage is erased unless `keeps_memory`.
    ///
    /// # Errors
    /// When a board is lost, or differs from its shadow.
    fn kill(&mut self, agent: usize, keeps_memory: bool) -> Result<(), SwarmError>;

    /// Starts a killed board again in `round`, with what it has stored.
    ///
    /// # Errors
    /// When it does not start.
    fn restart(&mut self, agent: usize, round: u32) -> Result<(), SwarmError>;

    /// Suspends a board once it has caught up with its shadow.
    ///
    /// # Errors
    /// When a board is lost, or differs from its shadow.
    fn freeze(&mut self, agent: usize) -> Result<(), SwarmError>;

    /// Resumes a suspended board.
    fn thaw(&mut self, agent: usize);

    /// The shadow of a board sends a frame.
    fn say(&mut self, agent: usize, frame: &[u8]);

    /// The shadow of a board receives a frame.
    fn hear(&mut self, agent: usize, sender: usize, frame: &[u8]);

    /// The shadow of a board ends its round, with this digest and this whole state.
    fn end_round(&mut self, agent: usize, digest: u32, state: Vec<u32>);

    /// Lets boards follow their shadows until none is too far behind.
    ///
    /// # Errors
    /// When a board is lost, or differs from its shadow.
    fn follow(&mut self) -> Result<(), SwarmError>;

    /// Waits until all boards have caught up with their shadows.
    ///
    /// # Errors
    /// When a board is lost, or differs from its shadow.
    fn catch_up(&mut self) -> Result<(), SwarmError>;

    /// The most stack that a board used so far, in bytes, where boards report it.
    fn deepest_stack_bytes(&self) -> Option<u32>;

    /// How often they were compared.
    fn digests(&self) -> DigestCounts;

    /// What boards logged as warnings or errors since the last call.
    fn take_warnings(&mut self) -> Vec<String>;

    /// Copies the logs of boards into a folder.
    ///
    /// # Errors
    /// When they cannot be written.
    fn keep_logs(&mut self, folder: &Path) -> io::Result<()>;
}
