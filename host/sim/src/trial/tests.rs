use std::path::Path;

use super::*;
use crate::record::{Caption, RunFolder};
use crate::scenario::PenaltyKind;
use crate::swarm::{DivergenceError, RAISE_LAMBDA};
use fabswarm_shared::agent::FaultCause;

fn run_into(folder: &Path, scenario: &Scenario) -> TrialOutcome {
    let folder = RunFolder::at(folder).unwrap();
    let mut recorder = Recorder::new(folder, "version = 1\n", ErrorKind::DistanceToSolution).unwrap();
    let mut swarm = build(scenario).unwrap();
    let interrupted = AtomicBool::new(false);
    let outcome = run(scenario, swarm.as_mut(), Some(&mut recorder), &mut NoObserver, &interrupted).unwrap();
    recorder.finish(&swarm.answer(), &outcome.summary, &Caption::of(scenario)).unwrap();
    outcome
}

/// The rounds of the rows in `metrics.csv`.
fn rows(folder: &Path) -> Vec<u64> {
    let metrics = std::fs::read_to_string(folder.join("metrics.csv")).unwrap();
    metrics.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect()
}

/// A scenario whose swarm diverges.
fn diverging() -> Scenario {
    let mut scenario = Scenario::default();
    scenario.algorithm.eta_y = 60.0;
    scenario
}

#[test]
fn a_run_goes_on_for_the_extra_rounds_and_an_error_that_comes_back_up_starts_the_wait_again() {
    let ends = |error: fn(u64) -> f64| {
        let mut stop = StopRule::new(&Scenario::default());
        let end = (0..).find(|&round| {
            stop.look_at(round, error(round));
            stop.is_reached(round)
        });
        (end, stop.one_percent)
    };
    assert_eq!(ends(|round| (-(round as f64) / 100.0).exp()), (Some(661), Some(461)));
    assert_eq!(ends(|round| if round == 50 || round >= 100 { 0.001 } else { 1.0 }), (Some(300), Some(50)));
}

#[test]
fn the_round_that_failed_is_in_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = run_into(folder.path(), &diverging());
    assert_eq!(outcome.summary.common.stopped_because, StoppedBecause::Diverged);
    let Some(SwarmError::Diverged(diverged)) = outcome.failure else { panic!("it diverged") };
    assert_eq!(outcome.summary.common.rounds, diverged.round - 1);
    assert_eq!(rows(folder.path()), Vec::from_iter(0..diverged.round));
}

#[test]
fn symmetric_penalty_without_minimum_asks_for_a_larger_lambda() {
    let folder = tempfile::tempdir().unwrap();
    let mut outcome = run_into(folder.path(), &diverging());
    let mut scenario = Scenario::default();
    for (variable, is_about_lambda) in [("y", false), ("z", true)] {
        let cause = FaultCause::DecisionNotFinite;
        outcome.failure = Some(DivergenceError { round: 30, agent: 3, variable, cause }.into());
        let complaint = outcome.complaint(&scenario).unwrap();
        assert_eq!(complaint.contains(RAISE_LAMBDA), is_about_lambda, "{complaint}");
    }
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
    run_into(folder.path(), &scenario);
    assert_eq!(rows(folder.path()), [0, 1000, 1500]);
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
