//! Observers of a run.

/// Observes a run. Calls are made from the run's own loop and should return at once.
pub trait TrialObserver {
    /// A round ended, with the error that was recorded last.
    fn round(&mut self, round: u64, error: f64);
    /// Boards logged these lines as warnings or errors.
    fn warn(&mut self, warnings: &[String]);
    /// The last round is over; a summary follows.
    fn finish(&mut self);
}

/// Ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl TrialObserver for NoObserver {
    fn round(&mut self, _: u64, _: f64) {}
    fn warn(&mut self, _: &[String]) {}
    fn finish(&mut self) {}
}
