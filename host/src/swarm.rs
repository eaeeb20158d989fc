//! Agents inside this process, and what a run sees of any swarm.

use crate::air::Air;
use crate::task::Score;
use fabswarm_shared::problem::Shape;
use std::io;
use std::path::Path;

mod agents;
mod exact;
mod links;
mod measure;
mod plain;
mod unguarded;

pub use agents::{AgentSetup, AgentSwarm, DigestCounts, HeapPeers, Radio, Remote, cause, swarm_key};
pub use exact::{ExactFab, LedgerConstants};
pub use links::Links;
pub use measure::{Metrics, Ruler, States};
pub use plain::{Constants, Mixing, PlainFab};
pub use unguarded::UnguardedFab;

/// Agents that step together, wherever they run.
pub trait Swarm {
    /// Takes every agent through one round.
    ///
    /// # Errors
    /// When an agent's state is no longer finite, or a board is lost.
    fn step(&mut self) -> Result<(), Halt>;
    /// What the present state is worth.
    fn metrics(&self) -> Metrics;
    /// Rounds done so far.
    fn round(&self) -> u64;
    /// Frames so far.
    fn counts(&self) -> FrameCounts;
    /// How well the swarm does in its task's own terms.
    fn scores(&self) -> Vec<Score>;
    /// The air it speaks through, if it speaks.
    fn air(&self) -> Option<&Air> {
        None
    }
    /// How often boards were compared with their shadows so far.
    fn digests(&self) -> DigestCounts {
        DigestCounts::default()
    }
    /// The most stack that a board used so far, in bytes, where boards can tell.
    fn deepest_stack_bytes(&self) -> Option<u32> {
        None
    }
    /// What boards logged as warnings or errors since the last call.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// Copies the logs of boards into a folder, which is made if there are any.
    ///
    /// # Errors
    /// When they cannot be written.
    fn keep_logs(&mut self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// Frames that the swarm sent, and what became of those that never counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames sent; each may be heard by many.
    pub sent: u64,
    /// Copies that were lost on their way to one who should have heard them.
    pub lost: u64,
    /// Copies that were heard and refused.
    pub refused: u64,
}

impl FrameCounts {
    fn of(air: &Air) -> Self {
        let counters = air.counters();
        Self { sent: counters.frames, lost: counters.lost.total(), refused: counters.refused() }
    }
}

/// What ends a run before its time.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// A state is no longer finite.
    #[error(transparent)]
    Diverged(#[from] Diverged),
    /// A board is lost, or is not what its shadow is.
    #[error(transparent)]
    Boards(Box<dyn std::error::Error + Send + Sync>),
}

/// A state that is no longer finite.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the swarm diverged in round {round}: {variable} of agent {agent} is no longer finite\nhelp: {remedy}"
)]
pub struct Diverged {
    /// The round that broke it.
    pub round: u64,
    /// The first agent it broke.
    pub agent: usize,
    /// The first variable of that agent.
    pub variable: &'static str,
    /// What to lower.
    pub remedy: String,
}

impl Diverged {
    /// The diagnosis for a variable (`x`, `y` or `z`) that is no longer finite after `round`.
    #[must_use]
    pub fn new(round: u64, agent: usize, variable: &'static str) -> Self {
        let remedy = format!("lower eta_{variable}, or eta_x, eta_y and eta_z by the same factor");
        Self { round, agent, variable, remedy }
    }

    /// The same for a word of the packed decision.
    #[must_use]
    pub fn at_word(round: u64, agent: usize, shape: &Shape, word: usize) -> Self {
        let variable = match word {
            word if word < shape.x => "x",
            word if word < shape.x + shape.y => "y",
            _ => "z",
        };
        Self::new(round, agent, variable)
    }
}
