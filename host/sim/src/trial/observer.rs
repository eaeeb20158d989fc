//! Observers of a run.

use crate::swarm::{BoardWarning, ErrorKind, Metrics, Swarm};

/// A swarm at the end of a round, or before the first.
#[derive(Clone, Copy)]
pub struct RoundEnd<'a> {
    /// The swarm.
    pub swarm: &'a dyn Swarm,
    /// The row that was recorded last.
    pub metrics: &'a Metrics,
    /// The quantity that its error measures.
    pub error: ErrorKind,
    /// Whether that row is of this round.
    pub is_recorded: bool,
}

impl std::fmt::Debug for RoundEnd<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { metrics, is_recorded, .. } = self;
        f.debug_struct("RoundEnd").field("metrics", metrics).field("is_recorded", is_recorded).finish()
    }
}

/// Observes a run. Calls are made from the run's own loop and should return at once.
pub trait TrialObserver {
    /// The run begins, or a round ended.
    fn round(&mut self, end: RoundEnd<'_>);
    /// Boards logged warnings or errors, or something happened to them.
    fn warn(&mut self, _warnings: &[BoardWarning]) {}
    /// The last round is over; a summary follows.
    fn finish(&mut self) {}
}

/// Ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl TrialObserver for NoObserver {
    fn round(&mut self, _: RoundEnd<'_>) {}
}
