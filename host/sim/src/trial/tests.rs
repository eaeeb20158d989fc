use std::path::Path;

use super::*;
use crate::air::FrameCounts;
use crate::record::{Caption, RunFolder};
use crate::scenario::PenaltyKind;
use crate::swarm::{Answer, DivergenceError, ErrorKind, Metrics, RAISE_LAMBDA};
use crate::task::Score;
use fabswarm_shared::problem::Shape;

/// A swarm whose error is a given function of the round.
struct ScriptedSwarm {
    round: u64,
    error: fn(u64) -> f64,
    breaks_at: u64,
}

impl Swarm for ScriptedSwarm {
    fn step(&mut self) -> Result<(), SwarmError> {
        self.round += 1;
        if self.round == self.breaks_at {
            return Err(DivergenceError::new(self.round, 3, "y").into());
        }
        Ok(())
    }

    fn metrics(&self) -> Metrics {
        let error = (self.error)(self.round);
        Metrics {
            round: self.round,
            error,
            consensus_error: error * 0.3 * (1.2 + (self.round as f64 / 9.0).sin()),
            tracking_defect: 1e-7 * (1.0 + (self.round as f64 / 5.0).cos().abs()),
            ..Metrics::default()
        }
    }

    fn round(&self) -> u64 {
        self.round
    }

    fn counts(&self) -> FrameCounts {
        FrameCounts { sent: self.round * 10, lost: 0, refused: 0 }
    }

    fn answer(&self) -> Answer {
        Answer::new(Shape { x: 1, y: 0, x_is_local: false }, &[self.round as f32])
    }

    fn scores(&self) -> Vec<Score> {
        vec![("accuracy".into(), 0.5)]
    }
}

fn scripted(error: fn(u64) -> f64) -> ScriptedSwarm {
    ScriptedSwarm { round: 0, error, breaks_at: u64::MAX }
}

fn run_into(folder: &Path, scenario: &Scenario, swarm: &mut ScriptedSwarm) -> TrialOutcome {
    let mut recorder =
        Recorder::new(RunFolder::at(folder).unwrap(), "version = 1\n", ErrorKind::DistanceToSolution)
            .unwrap();
    let mut observer = NoObserver;
    let outcome = run(scenario, swarm, Some(&mut recorder), &mut observer, &AtomicBool::new(false)).unwrap();
    recorder.finish(&outcome.summary, &Caption::of(scenario)).unwrap();
    outcome
}

fn outcome_of(scenario: &Scenario, swarm: &mut ScriptedSwarm) -> TrialOutcome {
    let folder = tempfile::tempdir().unwrap();
    run_into(folder.path(), scenario, swarm)
}

fn falling(round: u64) -> f64 {
    (-(round as f64) / 100.0).exp()
}

#[test]
fn it_goes_on_for_the_extra_rounds_after_convergence() {
    let outcome = outcome_of(&Scenario::default(), &mut scripted(falling));
    assert!(outcome.is_success);
    assert_eq!(outcome.summary.common.stopped_because, StoppedBecause::Converged);
    assert_eq!(outcome.summary.error.rounds_to_one_percent, Some(461));
    assert_eq!(outcome.summary.common.rounds, 661);
    assert_eq!(outcome.summary.task["accuracy"], 0.5);
}

#[test]
fn an_error_that_comes_back_up_starts_the_wait_again() {
    let outcome = outcome_of(
        &Scenario::default(),
        &mut scripted(|round| if round == 50 || round >= 100 { 0.001 } else { 1.0 }),
    );
    assert_eq!(outcome.summary.error.rounds_to_one_percent, Some(50));
    assert_eq!(outcome.summary.common.rounds, 300);
}

#[test]
fn divergence_keeps_the_run_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut swarm = ScriptedSwarm { round: 0, error: |_| 1.0, breaks_at: 30 };
    let outcome = run_into(folder.path(), &Scenario::default(), &mut swarm);
    assert_eq!(outcome.summary.common.stopped_because, StoppedBecause::Diverged);
    let Some(SwarmError::Diverged(diverged)) = outcome.failure else { panic!("it diverged") };
    assert_eq!((diverged.round, diverged.agent), (30, 3));
    let metrics = std::fs::read_to_string(folder.path().join("metrics.csv")).unwrap();
    assert_eq!(metrics.lines().count(), 1 + 30, "a header and rounds 0 to 29");
    assert_eq!(outcome.summary.common.rounds, 29, "the round that failed is in neither file");
}

#[test]
fn symmetric_penalty_without_minimum_asks_for_a_larger_lambda() {
    let mut scenario = Scenario::default();
    let mut outcome = outcome_of(&scenario, &mut ScriptedSwarm { round: 0, error: |_| 1.0, breaks_at: 30 });
    for (variable, is_about_lambda) in [("y", false), ("z", true)] {
        outcome.failure = Some(DivergenceError::new(30, 3, variable).into());
        let complaint = outcome.complaint(&scenario).unwrap();
        assert_eq!(complaint.contains(RAISE_LAMBDA), is_about_lambda, "{complaint}");
    }
    scenario.algorithm.eta_x = 50.0;
    outcome.failure = Some(DivergenceError::new(30, 3, "y").into());
    let complaint = outcome.complaint(&scenario).unwrap();
    assert!(complaint.contains("help: eta_x is 50, and 1.8 by default here"), "{complaint}");
    scenario.algorithm.lambda = 0.8;
    let refusal = build(&scenario).map(|_| ()).unwrap_err().to_string();
    assert!(refusal.contains("its curvature in y is -0.25") && refusal.contains(RAISE_LAMBDA), "{refusal}");
    scenario.algorithm.penalty = PenaltyKind::OneSided;
    assert!(build(&scenario).is_ok());
}

#[test]
fn sparse_metrics_still_hold_the_last_round() {
    let folder = tempfile::tempdir().unwrap();
    let mut scenario = Scenario::default();
    scenario.output.metrics_every = 1000;
    scenario.swarm.rounds = 1500;
    scenario.stop.error_below = 0.0;
    run_into(folder.path(), &scenario, &mut scripted(falling));
    let metrics = std::fs::read_to_string(folder.path().join("metrics.csv")).unwrap();
    let rounds: Vec<&str> = metrics.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(rounds, ["0", "1000", "1500"]);
}

#[test]
fn rows_thin_out_by_decades_unless_an_interval_is_given() {
    let rows = |range: std::ops::Range<u64>, every| range.filter(|&round| is_recorded(round, every)).count();
    assert_eq!(rows(0..1_000, 0), 1_000);
    assert_eq!(rows(1_000..10_000, 0), 900);
    assert_eq!(rows(10_000..100_000, 0), 900);
    assert_eq!(rows(0..1_000, 7), 143);
    assert!(is_recorded(u64::MAX / 10 * 10, 1));
}
