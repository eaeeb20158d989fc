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
/// The agents of the same numbers in this process are their shadows. Shadows go first; boards follow, must say the same frames and
/// come to the same bits. Nothing reaches a board that its sender, where that is a board, has not said.
pub trait Remote: std::fmt::Debug {
    /// Whether `agent` runs on a board.
    fn is_remote(&self, agent: usize) -> bool;

    /// Cuts the power of a board when it has come as far as its shadow; what it stored goes with it unless it is to be kept.
    ///
    /// # Errors
    /// When a board is lost, or is not what its shadow is.
    fn kill(&mut self, agent: usize, keeps_memory: bool) -> Result<(), SwarmError>;

    /// Starts a killed board again in `round`, with what it has stored.
    ///
    /// # Errors
    /// When it does not start.
    fn restart(&mut self, agent: usize, round: u32) -> Result<(), SwarmError>;

    /// Stops a board that has come as far as its shadow, to go on later as if nothing had been.
    ///
    /// # Errors
    /// When a board is lost, or is not what its shadow is.
    fn freeze(&mut self, agent: usize) -> Result<(), SwarmError>;

    /// Lets a frozen board go on.
    fn thaw(&mut self, agent: usize);

    /// The shadow of a board says a frame.
    fn say(&mut self, agent: usize, frame: &[u8]);

    /// The shadow of a board hears a frame.
    fn hear(&mut self, agent: usize, sender: usize, frame: &[u8]);

    /// The shadow of a board ends its round, with this digest and this whole state.
    fn end_round(&mut self, agent: usize, digest: u32, state: Vec<u32>);

    /// Lets boards follow their shadows, until none is too far behind.
    ///
    /// # Errors
    /// When a board is lost, or is not what its shadow is.
    fn follow(&mut self) -> Result<(), SwarmError>;

    /// Waits until all boards have come as far as their shadows.
    ///
    /// # Errors
    /// When a board is lost, or is not what its shadow is.
    fn catch_up(&mut self) -> Result<(), SwarmError>;

    /// The most stack that a board used so far, in bytes, where boards can tell.
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
