//! Shows how far a run is, without slowing it down.

use std::time::{Duration, Instant};

use super::super::output;
use fabswarm_sim::scenario::Scenario;
use fabswarm_sim::swarm::{BoardWarning, ErrorKind};
use fabswarm_sim::trial::{RoundEnd, TrialObserver};
use indicatif::ProgressBar;

/// A bar on a terminal, a line now and then elsewhere, nothing with `--quiet`.
#[derive(Debug)]
pub(super) struct RunProgress {
    bar: ProgressBar,
    shown: Instant,
    shown_round: u64,
    every: Duration,
    /// The quantity that the error measures.
    error: &'static str,
}

impl RunProgress {
    /// Progress on standard error.
    pub(super) fn on_stderr(scenario: &Scenario) -> Self {
        let template = "{bar:16} round {human_pos}/{human_len}  {msg}  {elapsed}";
        let bar = output::bar(scenario.swarm.rounds, template);
        let every = if bar.is_hidden() { Duration::from_secs(10) } else { Duration::from_millis(100) };
        Self { bar, shown: Instant::now(), shown_round: 0, every, error: ErrorKind::of(scenario).title() }
    }
}

impl TrialObserver for RunProgress {
    fn round(&mut self, end: RoundEnd<'_>) {
        let (round, name, error) = (end.swarm.round(), self.error, end.metrics.error);
        let elapsed = self.shown.elapsed();
        if elapsed < self.every {
            return;
        }
        let rate = (round - self.shown_round) as f64 / elapsed.as_secs_f64();
        if !self.bar.is_hidden() {
            self.bar.set_position(round);
            self.bar.set_message(format!("{rate:.0} rounds/s  {name} {error:.2e}"));
        } else if !output::is_quiet() {
            let most_rounds = self.bar.length().unwrap_or(0);
            eprintln!("round {round} of at most {most_rounds}, {rate:.0} rounds/s, {name} {error:.2e}");
        }
        (self.shown, self.shown_round) = (Instant::now(), round);
    }

    /// Prints above the bar.
    fn warn(&mut self, warnings: &[BoardWarning]) {
        self.bar.suspend(|| warnings.iter().for_each(|warning| eprintln!("{warning}")));
    }

    /// Leaves the terminal as it was.
    fn finish(&mut self) {
        self.bar.finish_and_clear();
    }
}
