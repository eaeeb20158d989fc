//! A run from scenario to summary.

mod baseline;
mod build;
mod memory;
mod observer;
mod phases;
mod verdict;

pub use build::{
    BuildError, ExactAgents, build, build_with, build_with_method, exact_agents, exact_agents_with, setup,
    unbuildable,
};
pub use observer::{NoObserver, RoundEnd, TrialObserver};
pub use phases::self_weight;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::record::{self, AirReport, CommonSummary, FinalError, Recorder, RunSummary, StoppedBecause};
use crate::scenario::Scenario;
use crate::swarm::{ErrorKind, Metrics, Swarm, SwarmError};

/// The error that `rounds_to_one_percent` is about, whatever the scenario stops at.
const ONE_PERCENT: f64 = 0.01;

/// A run whose error has grown by this factor has diverged; more rounds would not help.
const GROWN: f64 = 1e3;

/// How often boards are asked for what they logged.
const WARN_EVERY: Duration = Duration::from_secs(1);

/// How a run ended.
#[derive(Debug)]
pub struct TrialOutcome {
    /// The summary.
    pub summary: RunSummary,
    /// Why it ended early, if it did.
    pub failure: Option<SwarmError>,
    /// Whether it reached the goal of the scenario.
    pub is_success: bool,
    /// The error it began with.
    pub first_error: f64,
}

/// Steps `swarm` until the scenario's stop, its last round, divergence or `interrupted`, and records it where there is a recorder.
///
/// # Errors
/// When the run folder can no longer be written.
pub fn run(
    scenario: &Scenario,
    swarm: &mut dyn Swarm,
    recorder: Option<&mut Recorder>,
    observer: &mut dyn TrialObserver,
    interrupted: &AtomicBool,
) -> Result<TrialOutcome, record::Error> {
    let started = Instant::now();
    let first = swarm.metrics();
    let stop = StopRule::new(scenario);
    let mut trial = Trial { scenario, swarm, recorder, observer, stop, last: first, rounds: first.round };
    trial.add_row(first)?;
    let (mut stopped_because, mut failure) = trial.step_to_the_end(interrupted)?;
    // A difference between a board and its shadow is more informative than the divergence of the shadow.
    if !matches!(failure, Some(SwarmError::Boards(_) | SwarmError::Interrupted)) {
        match trial.swarm.finish() {
            Ok(()) => {}
            Err(SwarmError::Interrupted) if failure.is_some() => {}
            Err(error) => stopped_because = because(failure.insert(error)),
        }
    }
    // The shadows have ended their round: what they computed is recorded as after any other interrupt.
    failure.take_if(|failure| matches!(failure, SwarmError::Interrupted));
    // A run that ends between two rows gets a last row.
    if trial.last.round != trial.rounds && failure.is_none() {
        trial.add_row(trial.swarm.metrics())?;
    }
    // By how much broken books are off is seen in the round that broke them.
    if let Some(SwarmError::Books(broken)) = &failure {
        trial.record(Metrics { round: broken.round, ..trial.swarm.metrics() })?;
    }
    trial.observer.finish();
    trial.warn();

    let last = trial.last.error;
    // A diverging error can stay finite for many rounds.
    if stopped_because == StoppedBecause::MaxRounds && last > GROWN * first.error {
        stopped_because = StoppedBecause::Diverged;
    }
    let is_success = match stopped_because {
        StoppedBecause::Converged | StoppedBecause::SmallGradient => true,
        StoppedBecause::MaxRounds => scenario.stop.error_below == 0.0 || last < scenario.stop.error_below,
        StoppedBecause::Interrupted
        | StoppedBecause::Diverged
        | StoppedBecause::BooksBroken
        | StoppedBecause::BoardsFailed => false,
    };
    let summary = trial.summary(stopped_because, started.elapsed().as_secs_f64());
    Ok(TrialOutcome { summary, failure, is_success, first_error: first.error })
}

/// A run in progress.
struct Trial<'a> {
    scenario: &'a Scenario,
    swarm: &'a mut dyn Swarm,
    recorder: Option<&'a mut Recorder>,
    observer: &'a mut dyn TrialObserver,
    stop: StopRule,
    /// The last row.
    last: Metrics,
    /// A step that fails still advances the swarm's own counter.
    rounds: u64,
}

impl Trial<'_> {
    fn step_to_the_end(
        &mut self,
        interrupted: &AtomicBool,
    ) -> Result<(StoppedBecause, Option<SwarmError>), record::Error> {
        let mut warned = Instant::now();
        loop {
            let last_round = self.scenario.swarm.rounds;
            if self.stop.is_reached(self.rounds) {
                let because = match ErrorKind::of(self.scenario) {
                    ErrorKind::DistanceToSolution => StoppedBecause::Converged,
                    ErrorKind::GradientNorm => StoppedBecause::SmallGradient,
                };
                return Ok((because, None));
            }
            if self.rounds >= last_round {
                return Ok((StoppedBecause::MaxRounds, None));
            }
            if interrupted.load(Ordering::Relaxed) {
                return Ok((StoppedBecause::Interrupted, None));
            }
            if let Err(error) = self.swarm.step() {
                return Ok((because(&error), Some(error)));
            }
            self.rounds = self.swarm.round();
            if is_recorded(self.rounds, self.scenario.output.metrics_every) || self.rounds >= last_round {
                self.add_row(self.swarm.metrics())?;
            } else {
                self.show(false);
            }
            if warned.elapsed() > WARN_EVERY {
                self.warn();
                warned = Instant::now();
            }
        }
    }

    /// Records the present state and looks whether the goal is reached.
    fn add_row(&mut self, metrics: Metrics) -> Result<(), record::Error> {
        self.stop.look_at(metrics.round, metrics.error);
        self.record(metrics)
    }

    fn record(&mut self, metrics: Metrics) -> Result<(), record::Error> {
        self.last = metrics;
        if let Some(recorder) = &mut self.recorder {
            recorder.record(metrics)?;
        }
        self.show(true);
        Ok(())
    }

    fn show(&mut self, is_recorded: bool) {
        let error = ErrorKind::of(self.scenario);
        self.observer.round(RoundEnd { swarm: &*self.swarm, metrics: &self.last, error, is_recorded });
    }

    /// Passes the warnings of boards on.
    fn warn(&mut self) {
        if let Some(boards) = self.swarm.boards() {
            self.observer.warn(&boards.take_warnings());
        }
    }

    fn summary(&mut self, stopped_because: StoppedBecause, seconds: f64) -> RunSummary {
        let Self { scenario, swarm, last, rounds, .. } = self;
        let boards = swarm.boards().map(|boards| (boards.digests(), boards.deepest_stack_bytes()));
        let (digests, deepest_stack_bytes) = boards.unwrap_or_default();
        let mass = swarm.uncollected_mass();
        RunSummary {
            common: CommonSummary {
                consensus_error: last.consensus_error,
                tracking_defect: last.tracking_defect,
                air: swarm.air().map(AirReport::on),
                ..CommonSummary::new(scenario, stopped_because, *rounds, seconds, swarm.counts())
            },
            problem: scenario.problem.kind.word(),
            error: FinalError {
                kind: ErrorKind::of(scenario),
                rounds_to_one_percent: self.stop.one_percent,
                last: last.error,
            },
            mass_waiting: mass.map(|mass| mass.waiting),
            mass_owed_to_gone: mass.map(|mass| mass.owed_to_gone),
            unheard_members: swarm.unheard_members(),
            digest_checks: digests.checks,
            digest_mismatches: digests.mismatches,
            deepest_stack_bytes,
            task: swarm.scores().into_iter().collect(),
        }
    }
}

const fn because(failure: &SwarmError) -> StoppedBecause {
    match failure {
        SwarmError::Diverged(_) => StoppedBecause::Diverged,
        SwarmError::Books(_) => StoppedBecause::BooksBroken,
        SwarmError::Boards(_) => StoppedBecause::BoardsFailed,
        SwarmError::Interrupted => StoppedBecause::Interrupted,
    }
}

/// Whether `round` gets a row: every `every`-th one, or with 0 about a thousand in each decade. A figure does not need a million
/// points, and measuring a small swarm takes longer than stepping it.
pub const fn is_recorded(round: u64, every: u64) -> bool {
    let every = match every {
        0 => 10_u64.pow(match round {
            0 => 0,
            round => round.ilog10().saturating_sub(2),
        }),
        every => every,
    };
    round.is_multiple_of(every)
}

/// When a run stops early: its error has stayed below the limit for a number of rounds.
struct StopRule {
    error_below: f64,
    extra_rounds: u64,
    below_since: Option<u64>,
    one_percent: Option<u64>,
}

impl StopRule {
    fn new(scenario: &Scenario) -> Self {
        Self {
            error_below: scenario.stop.error_below,
            extra_rounds: scenario.stop.extra_rounds,
            below_since: None,
            one_percent: None,
        }
    }

    fn look_at(&mut self, round: u64, error: f64) {
        if error < ONE_PERCENT {
            self.one_percent.get_or_insert(round);
        }
        if error < self.error_below {
            self.below_since.get_or_insert(round);
        } else {
            self.below_since = None;
        }
    }

    fn is_reached(&self, round: u64) -> bool {
        self.below_since.is_some_and(|since| round >= since + self.extra_rounds)
    }
}

#[cfg(test)]
mod tests;
