//! Every rule of a verdict, on outcomes that are made up.

use super::*;
use crate::experiment::Series;
use crate::experiment_config::ExperimentConfig;
use crate::method::{MethodKind, StepSizes};
use crate::small::{MethodWorkload, Point, RunOutcome};

/// A run with these errors by iterations, of which each is a round, a float and a second.
fn run(errors: &[(u32, f64)]) -> RunOutcome {
    let point = |&(rounds, error): &(u32, f64)| Point {
        iterations: rounds,
        rounds,
        floats: rounds.into(),
        seconds: rounds.into(),
        error,
        consensus: error / 100.0,
    };
    let points: Vec<Point> = errors.iter().map(point).collect();
    let one_percent = points.iter().find(|point| point.error < 0.01).copied();
    RunOutcome { points, one_percent, least_stationarity: None, has_diverged: false }
}

/// A series of one run.
fn series(panel: &str, method: MethodKind, errors: &[(u32, f64)]) -> MethodOutcome {
    let work = MethodWorkload {
        method,
        steps: None,
        setting: ExperimentConfig::default(),
        paper: None,
        reference: None,
    };
    MethodOutcome {
        series: Series { panel: panel.into(), label: method.label().into(), work },
        choice: StepSizes { upper: 1.0, lower: 1.0, twin: None },
        runs: vec![run(errors)],
    }
}

/// A series that comes below one per cent at `rounds`.
fn reaching(panel: &str, method: MethodKind, rounds: u32) -> MethodOutcome {
    series(panel, method, &[(0, 1.0), (rounds, 0.005)])
}

fn findings(experiment: &str, series: &[MethodOutcome]) -> Vec<Finding> {
    of(experiment, series).into_iter().map(|verdict| verdict.finding).collect()
}

use Finding::{NotSeen, Seen};
use MethodKind::{DlPushSaga, DlPushSgd, Fab, LedgerFab, PushPull, PushPullSoba, PushSumFab, StaticFab};

#[test]
fn errors_are_compared_at_the_same_iteration() {
    let sparse = series("", Fab, &[(0, 1.0), (800, 0.1), (1000, 0.001)]);
    let at = |amount| sparse.error_at(Axis::Iterations, amount);
    assert!((at(900.0) / 0.01 - 1.0).abs() < 1e-9, "halfway on a logarithmic scale: {}", at(900.0));
    assert_eq!([at(800.0), at(1000.0), at(5000.0)], [0.1, 0.001, 0.001]);
}

#[test]
fn policy_evaluation_compares_with_double_loops_one_level_and_links() {
    let with = |fab_at_1000: f64, single: f64, early: f64, saga: f64, dense: u32| {
        let mut many = reaching("many links", Fab, dense);
        many.series.work.setting.edge_probability = 0.7;
        let end = [(0, 1.0), (800, 0.13), (1000, fab_at_1000), (20_000, 0.002)];
        let all = [
            series("few links", Fab, &end),
            series("few links", DlPushSgd, &[(0, 1.0), (10, early), (952, 0.08)]),
            series("few links", DlPushSaga, &[(0, 1.0), (10, early), (952, saga)]),
            series("few links", PushPull, &[(0, 1.0), (20_000, single)]),
            many,
        ];
        findings("policy-evaluation", &all)
    };
    // FAB falls below the double loops between its samples at 800 and 1,000, before these end at 952.
    assert_eq!(with(0.04, 1e-2, 0.5, 0.09, 500), vec![Seen; 6]);
    assert_eq!(with(0.12, 1e-9, 1.0, 0.5, 20_000), vec![NotSeen; 6]);
    assert_eq!(findings("policy-evaluation-100", &[]).len(), 4);
}

#[test]
fn integrations_are_judged_by_time_error_and_steps() {
    let with = |static_end: f64, rival: &[(u32, f64)], rival_step: f64| {
        let mut all = vec![
            series("", StaticFab, &[(0, 1.0), (10, static_end)]),
            series("", Fab, &[(0, 1.0), (20, 0.01)]),
            series("", PushSumFab, rival),
            series("", PushPullSoba, rival),
        ];
        all[2..].iter_mut().for_each(|one| one.choice.upper = rival_step);
        findings("integrations", &all)
    };
    assert_eq!(with(5.0, &[(0, 1.0), (50, 0.02)], 0.01), vec![Seen; 4]);
    assert_eq!(with(0.5, &[(0, 1.0), (5, 0.005)], 0.5), vec![NotSeen; 4]);
}

#[test]
fn lost_frames_ask_who_reaches_one_percent() {
    let with = |ledger: f64, fab: f64| {
        let mut plain = series("", Fab, &[(0, 1.0), (100, fab)]);
        plain.series.work.setting.loss = 0.1;
        findings("lost-frames", &[series("", LedgerFab, &[(0, 1.0), (100, ledger)]), plain])
    };
    assert_eq!(with(0.001, 0.5), vec![Seen; 2]);
    assert_eq!(with(0.5, 0.001), vec![NotSeen; 2]);
}

#[test]
fn factors_ask_for_the_ledger_under_loss_a_lower_floor_and_fewer_rounds_and_floats() {
    let with = |lossy: f64, symmetric: f64, best: u32, share: u64| {
        let row = |panel, label: &str, loss, errors: &[(u32, f64)]| {
            let mut one = series(panel, Fab, errors);
            (one.series.label, one.series.work.setting.loss) = (label.into(), loss);
            one
        };
        let mut silent = row("none", "and silent when still", 0.0, &[(0, 1.0), (best + 9, 0.001)]);
        let end = silent.runs[0].one_percent.as_mut().unwrap();
        end.floats = end.floats * share / 100;
        let all = [
            silent,
            row("none", "published FAB", 0.0, &[(0, 1.0), (500, 0.002)]),
            row("none", "+ symmetric penalty", 0.0, &[(0, 1.0), (400, symmetric)]),
            row("none", "all four, larger steps", 0.0, &[(0, 1.0), (best, 0.001)]),
            row("lost", "published FAB", 0.3, &[(0, 1.0), (500, lossy)]),
            row("lost", "all four, larger steps", 0.3, &[(0, 1.0), (best, 1.0 - lossy)]),
        ];
        findings("factors", &all)
    };
    assert_eq!(with(0.999, 1e-4, 100, 50), vec![Seen; 4]);
    assert_eq!(with(0.001, 1e-3, 600, 95), vec![NotSeen; 4]);
}

#[test]
fn rates_are_slopes_and_a_diverged_run_has_none() {
    let with = |fab: f64, push_pull: f64, has_diverged: bool| {
        let at = |method, rounds, least| {
            let mut one = reaching("", method, 1);
            one.series.work.setting.rounds = rounds;
            (one.runs[0].least_stationarity, one.runs[0].has_diverged) = (Some(least), has_diverged);
            one
        };
        let all =
            [at(Fab, 1000, 1.0), at(Fab, 8000, fab), at(PushPull, 1000, 1.0), at(PushPull, 8000, push_pull)];
        findings("rates", &all)
    };
    assert_eq!(with(0.25, 0.125, false), vec![Seen; 2]);
    assert_eq!(with(0.5, 0.25, false), vec![NotSeen; 2]);
    assert_eq!(with(0.25, 0.125, true), vec![NotSeen; 2]);
}

#[test]
fn rings_ask_for_an_early_low_error_that_stays() {
    let with = |early: f64, end: f64| {
        findings("rings", &[series("", LedgerFab, &[(0, 1.0), (5000, early), (10_000, end)])])
    };
    assert_eq!(with(0.005, 0.005), vec![Seen; 2]);
    assert_eq!(with(0.5, 0.9), vec![NotSeen; 2]);
    let two = |first, second| [reaching("", Fab, first), reaching("", Fab, second)];
    for (experiment, seen) in [("agents", two(100, 200)), ("weights", two(200, 100))] {
        assert_eq!(findings(experiment, &seen), [Seen]);
        let [first, second] = seen;
        assert_eq!(findings(experiment, &[second, first]), [NotSeen]);
    }
}

#[test]
fn sensitivity_compares_rows_with_print_reference_and_each_other() {
    let with = |larger_lambda: u32, larger_x: u32, unequal: f64, larger_both: u32| {
        let row = |lambda: f64, x: f64, y: f64, z: f64, mut one: MethodOutcome| {
            one.choice = StepSizes { upper: x / lambda, lower: y, twin: Some(z) };
            one.series.work.setting.lambda = lambda;
            one
        };
        let mut all = vec![
            row(60.0, 0.1, 0.1, 0.1, reaching("", Fab, 100)),
            row(120.0, 0.1, 0.1, 0.1, reaching("", Fab, larger_lambda)),
            row(60.0, 0.2, 0.1, 0.1, reaching("", Fab, larger_x)),
            row(60.0, 0.1, 0.1, 0.2, series("", Fab, &[(0, 1.0), (10, unequal)])),
            row(60.0, 0.1, 0.2, 0.2, reaching("", Fab, larger_both)),
        ];
        for (one, (reference, paper)) in all.iter_mut().zip([
            (Some(100.0), "100"),
            (Some(200.0), "200"),
            (Some(50.0), "50"),
            (None, "diverges"),
            (Some(150.0), "150"),
        ]) {
            (one.series.work.reference, one.series.work.paper) = (reference, Some(paper.into()));
        }
        findings("sensitivity", &all)
    };
    assert_eq!(with(200, 50, 5.0, 150), vec![Seen; 7]);
    let row = |count| Finding::DependsOn(format!("the row: {count} of 5"));
    assert_eq!(with(90, 110, 0.001, 99), [row(1), row(1), NotSeen, NotSeen, NotSeen, Seen, NotSeen]);
}
