//! Agents that run outside this process.

use crate::swarm::Halt;
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

/// Boards that run some agents of a swarm in lock-step.
///
/// The agents of the same numbers in this process are their shadows: they hear what the boards hear, and must come to the
/// same bits.
pub trait Remote: std::fmt::Debug {
    /// Whether `agent` runs on a board.
    fn is_remote(&self, agent: usize) -> bool;

    /// Cuts the power of a board.
    fn kill(&mut self, agent: usize);

    /// Starts a killed board again in `round`, with what it had stored or without.
    ///
    /// # Errors
    /// When it does not start.
    fn restart(&mut self, agent: usize, round: u32, keeps_memory: bool) -> Result<(), Halt>;

    /// Stops a board where it is, to go on later as if nothing had been.
    fn freeze(&mut self, agent: usize);

    /// Lets a frozen board go on.
    fn thaw(&mut self, agent: usize);

    /// Waits until every board has said what it has to say in the round.
    ///
    /// # Errors
    /// When a board is lost.
    fn begin_round(&mut self) -> Result<(), Halt>;

    /// What a board says in the round.
    fn frames(&self, agent: usize) -> &[Vec<u8>];

    /// Lets a board hear a frame.
    fn deliver(&mut self, agent: usize, frame: &[u8]);

    /// Ends the round of these agents' boards, and does not wait for them.
    fn end_round(&mut self, agents: &[usize]);

    /// Waits for what a board came to and compares it with the digest of its shadow, whose whole state is there to be
    /// asked for.
    ///
    /// # Errors
    /// When they differ, or a board is lost.
    fn check(&mut self, agent: usize, digest: u32, state: &dyn Fn() -> Vec<u32>) -> Result<(), Halt>;

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
