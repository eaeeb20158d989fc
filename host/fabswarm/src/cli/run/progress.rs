//! Shows how far a run is, without slowing it down.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use super::super::output;
use fabswarm_sim::scenario::Scenario;
use fabswarm_sim::swarm::{BoardWarning, ErrorKind};
use fabswarm_sim::trial::{RoundEnd, TrialObserver};
use indicatif::{ProgressBar, ProgressStyle};

/// A bar on a terminal, a line now and then elsewhere, nothing with `--quiet`.
#[derive(Debug)]
pub(super) struct RunProgress {
    sink: Sink,
    shown: Instant,
    shown_round: u64,
    every: Duration,
    /// The quantity that the error measures.
    error: &'static str,
}

#[derive(Debug)]
enum Sink {
    Bar(ProgressBar),
    Lines { most_rounds: u64 },
    Nothing,
}

impl RunProgress {
    /// Progress on standard error.
    pub(super) fn on_stderr(scenario: &Scenario) -> Self {
        let (most_rounds, error) = (scenario.swarm.rounds, ErrorKind::of(scenario).title());
        if output::is_quiet() {
            return Self::new(Sink::Nothing, Duration::MAX, error);
        }
        if !stderr().is_terminal() {
            return Self::new(Sink::Lines { most_rounds }, Duration::from_secs(10), error);
        }
        let bar = ProgressBar::new(most_rounds);
        let style = ProgressStyle::with_template("{bar:16} round {human_pos}/{human_len}  {msg}  {elapsed}")
            .expect("a fixed template is valid");
        bar.set_style(style.progress_chars("━╸─"));
        Self::new(Sink::Bar(bar), Duration::from_millis(100), error)
    }

    fn new(sink: Sink, every: Duration, error: &'static str) -> Self {
        Self { sink, shown: Instant::now(), shown_round: 0, every, error }
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
        match &self.sink {
            Sink::Bar(bar) => {
                bar.set_position(round);
                bar.set_message(format!("{rate:.0} rounds/s  {name} {error:.2e}"));
            }
            Sink::Lines { most_rounds } => {
                eprintln!("round {round} of at most {most_rounds}, {rate:.0} rounds/s, {name} {error:.2e}");
            }
            Sink::Nothing => {}
        }
        (self.shown, self.shown_round) = (Instant::now(), round);
    }

    /// Prints above the bar.
    fn warn(&mut self, warnings: &[BoardWarning]) {
        for warning in warnings {
            match &self.sink {
                Sink::Bar(bar) => bar.suspend(|| eprintln!("{warning}")),
                Sink::Lines { .. } | Sink::Nothing => eprintln!("{warning}"),
            }
        }
    }

    /// Leaves the terminal as it was.
    fn finish(&mut self) {
        if let Sink::Bar(bar) = &self.sink {
            bar.finish_and_clear();
        }
    }
}
