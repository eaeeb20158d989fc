//! A run from scenario to summary.

mod build;
mod memory;
mod observer;
mod turns;
mod verdict;

pub use build::{
    BuildError, ExactAgents, IN_PROCESS, build, build_with, exact_agents, exact_agents_with, setup,
};
pub use memory::TooLarge;
pub use observer::{NoObserver, RoundEnd, TrialObserver};

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::record::{self, AirReport, FinalError, Recorder, RunSummary, StoppedBecause};
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
    mut recorder: Option<&mut Recorder>,
    observer: &mut dyn TrialObserver,
    interrupted: &AtomicBool,
) -> Result<TrialOutcome, record::Error> {
    let started = Instant::now();
    let error = ErrorKind::of(scenario);
    let mut stop = StopRule::new(scenario);
    let mut failure = None;
    let first = swarm.metrics();
    let mut last = first;
    // A step that fails still advances the swarm's own counter.
    let mut rounds = first.round;
    let mut warned = Instant::now();
    let mut record = |metrics| recorder.as_mut().map_or(Ok(()), |recorder| recorder.record(metrics));
    record(first)?;
    stop.look_at(first.round, first.error);
    observer.round(RoundEnd { swarm: &*swarm, metrics: &first, error, is_recorded: true });

    let mut stopped_because = loop {
        let round = swarm.round();
        if stop.is_reached(round) {
            break StoppedBecause::Converged;
        }
        if round >= scenario.swarm.rounds {
            break StoppedBecause::MaxRounds;
        }
        if interrupted.load(Ordering::Relaxed) {
            break StoppedBecause::Interrupted;
        }
        if let Err(error) = swarm.step() {
            break because(failure.insert(error));
        }
        let round = swarm.round();
        rounds = round;
        let is_recorded = is_recorded(round, scenario.output.metrics_every) || round >= scenario.swarm.rounds;
        if is_recorded {
            last = swarm.metrics();
            record(last)?;
            stop.look_at(round, last.error);
        }
        observer.round(RoundEnd { swarm: &*swarm, metrics: &last, error, is_recorded });
        if warned.elapsed() > WARN_EVERY {
            observer.warn(&swarm.take_warnings());
            warned = Instant::now();
        }
    };
    // A difference between a board and its shadow is more informative than the divergence of the shadow.
    if !matches!(failure, Some(SwarmError::Boards(_) | SwarmError::Interrupted)) {
        match swarm.finish() {
            Ok(()) => {}
            Err(SwarmError::Interrupted) if failure.is_some() => {}
            Err(error) => stopped_because = because(failure.insert(error)),
        }
    }
    // The shadows have ended their round: what they computed is recorded as after any other interrupt.
    failure.take_if(|failure| matches!(failure, SwarmError::Interrupted));
    // A run that ends between two rows gets a last row.
    if last.round != rounds && failure.is_none() {
        last = swarm.metrics();
        record(last)?;
        stop.look_at(rounds, last.error);
        observer.round(RoundEnd { swarm: &*swarm, metrics: &last, error, is_recorded: true });
    }
    // By how much broken books are off is seen in the round that broke them.
    if let Some(SwarmError::Books(broken)) = &failure {
        last = Metrics { round: broken.round, ..swarm.metrics() };
        record(last)?;
        observer.round(RoundEnd { swarm: &*swarm, metrics: &last, error, is_recorded: true });
    }
    observer.finish();
    observer.warn(&swarm.take_warnings());

    // A diverging error can stay finite for many rounds.
    let has_grown = last.error > GROWN * first.error;
    let stopped_because = match stopped_because {
        StoppedBecause::MaxRounds if has_grown => StoppedBecause::Diverged,
        because => because,
    };
    let seconds = started.elapsed().as_secs_f64();
    let counts = swarm.counts();
    let digests = swarm.digests();
    let mass = swarm.uncollected_mass();
    let summary = RunSummary {
        version: env!("CARGO_PKG_VERSION"),
        problem: scenario.problem.kind.word(),
        algorithm: scenario.algorithm.kind.word(),
        topology: scenario.network.topology.word(),
        agents: scenario.swarm.agents,
        seed: scenario.seed,
        stopped_because,
        rounds,
        error: FinalError { kind: error, rounds_to_one_percent: stop.one_percent, last: last.error },
        consensus_error: last.consensus_error,
        tracking_defect: last.tracking_defect,
        mass_waiting: mass.map(|mass| mass.waiting),
        mass_owed_to_gone: mass.map(|mass| mass.owed_to_gone),
        seconds,
        rounds_per_second: rounds as f64 / seconds.max(f64::MIN_POSITIVE),
        frames_sent: counts.sent,
        copies_lost: counts.lost,
        copies_refused: counts.refused,
        digest_checks: digests.checks,
        digest_mismatches: digests.mismatches,
        deepest_stack_bytes: swarm.deepest_stack_bytes(),
        air: swarm.air().map(AirReport::on),
        task: swarm.scores().into_iter().collect(),
    };
    let is_success = match stopped_because {
        StoppedBecause::Converged => true,
        StoppedBecause::MaxRounds => {
            scenario.stop.error_below == 0.0 || last.error < scenario.stop.error_below
        }
        StoppedBecause::Interrupted
        | StoppedBecause::Diverged
        | StoppedBecause::BooksBroken
        | StoppedBecause::BoardsFailed => false,
    };
    Ok(TrialOutcome { summary, failure, is_success, first_error: first.error })
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
const fn is_recorded(round: u64, every: u64) -> bool {
    let every = match every {
        0 => 10_u64.pow(match round {
            0 => 0,
            round => round.ilog10().saturating_sub(2),
        }),
        every => every,
    };
    round.is_multiple_of(every)
}

/// When a run has converged: its error has stayed below the limit for a number of rounds.
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
