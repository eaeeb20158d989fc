//! Every rule, on outcomes that are made up.

use super::*;
use crate::experiment::{Experiment, Series};
use crate::experiment_config::ExperimentConfig;
use crate::method::{MethodKind, StepSizes};
use crate::small::{MethodWorkload, Point};
use crate::verdict::Finding;

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

/// A series of five equal runs.
fn series(panel: &str, label: &str, errors: &[(u32, f64)]) -> MethodOutcome {
    let setting = ExperimentConfig::default();
    let work = MethodWorkload { method: MethodKind::Fab, steps: None, setting, paper: None, reference: None };
    MethodOutcome {
        series: Series { panel: panel.into(), label: label.into(), work },
        choice: StepSizes { upper: 1.0, lower: 1.0, twin: None },
        runs: vec![run(errors); 5],
    }
}

/// A series that comes below one per cent at `rounds`.
fn reaching(panel: &str, label: &str, rounds: u32) -> MethodOutcome {
    series(panel, label, &[(0, 1.0), (rounds, 0.005)])
}

/// The finding of a rule as files have it.
fn finding(rule: &str, all: &[MethodOutcome]) -> String {
    #[derive(Deserialize)]
    struct RuleFile {
        rule: MethodRule,
    }
    let file: RuleFile = toml_edit::de::from_str(&format!("rule = {{ {rule} }}")).unwrap();
    Finding::of(&file.rule.cases(0.05, all)).to_string()
}

#[test]
fn every_claim_names_series_and_panels_that_there_are() {
    for experiment in Experiment::<MethodWorkload>::all(false).unwrap() {
        for claim in &experiment.claims {
            for label in claim.rule.labels() {
                let mut labels = experiment.series.iter().map(|series| &series.label);
                let is_there = labels.any(|one| is_meant(std::slice::from_ref(label), one));
                assert!(is_there, "{}: {}: {label}", experiment.name, claim.text);
            }
            for panel in claim.rule.named_panels() {
                assert!(experiment.panels().contains(&panel.as_str()), "{}: {panel}", experiment.name);
            }
        }
    }
}

#[test]
fn less_compares_with_the_closest_of_all_that_have_moved() {
    let with = |own: f64, rival: f64| {
        let end = |label, error| series("", label, &[(0, 1.0), (100, error)]);
        let all = [end("FAB", own), end("DL-a", rival), end("DL-b", 0.5), end("DL-c", 1.0)];
        finding("less = { measure = 'settled-error', of = ['FAB'], than = ['DL-*'] }", &all)
    };
    assert_eq!(with(0.01, 0.02), "seen");
    assert_eq!(with(0.01, 0.0102), "tie");
    assert_eq!(with(0.02, 0.01), "not seen");
    let by = "less = { measure = 'settled-error', of = ['a'], than = ['b'], by = 10.0 }";
    let all = [series("", "a", &[(9, 1e-4)]), series("", "b", &[(9, 5e-4)])];
    assert_eq!(finding(by, &all), "not seen", "five times lower is not ten times");
    assert_eq!(finding(&by.replace("10.0", "4.0"), &all), "seen");
    let still = [series("", "FAB", &[(9, 0.99)]), series("", "DL-a", &[(9, 1.0)])];
    let rule = "less = { measure = 'settled-error', of = ['FAB'], than = ['DL-*'] }";
    assert_eq!(finding(rule, &still), "tie", "no case");
}

#[test]
fn measures_are_taken_at_the_same_place() {
    let sparse = series("", "FAB", &[(0, 1.0), (800, 0.13), (1000, 0.04), (20_000, 0.002)]);
    let dense = series("", "DL", &[(0, 1.0), (10, 0.5), (952, 0.08)]);
    let all = [sparse, dense];
    let less = |measure: &str, of: &str, than: &str| {
        finding(&format!("less = {{ measure = {measure}, of = ['{of}'], than = ['{than}'] }}"), &all)
    };
    // FAB falls below between its samples at 800 and 1,000, before the other ends at 952.
    assert_eq!(less("{ error-at-end = 'iterations' }", "FAB", "DL"), "seen");
    assert_eq!(less("{ error-at = ['iterations', 10.0] }", "DL", "FAB"), "seen");
    assert_eq!(less("{ error-at = ['iterations', 10.0] }", "FAB", "DL"), "not seen");
    assert_eq!(less("{ one-percent = 'rounds' }", "FAB", "DL"), "seen", "the other never does");
    // At second 952, and at 1,000.
    assert_eq!(less("'seconds-to-worse'", "DL", "FAB"), "seen");
    assert_eq!(less("'inverse-step'", "DL", "FAB"), "tie", "equal steps");
}

#[test]
fn alike_takes_both_sides_and_something_that_moved() {
    let with = |first: f64, second: f64| {
        let all = [series("", "a", &[(9, first)]), series("", "b", &[(9, second)])];
        finding("alike = { measure = 'settled-error', series = ['a', 'b'], within = 1.25 }", &all)
    };
    assert_eq!(with(0.10, 0.11), "seen");
    assert_eq!([with(0.10, 0.2), with(0.2, 0.1)], ["not seen"; 2]);
    assert_eq!(with(1.0, 1.0), "tie", "no case");
}

#[test]
fn grows_goes_along_series_or_panels() {
    let rule = "grows = { measure = { one-percent = 'rounds' }, series = ['n = 10', 'n = 15'] }";
    let with =
        |first, second| finding(rule, &[reaching("", "n = 10", first), reaching("", "n = 15", second)]);
    assert_eq!([with(100, 200), with(100, 102), with(200, 100)], ["seen", "tie", "not seen"]);
    let never = |label| series("", label, &[(9, 0.5)]);
    assert_eq!(finding(rule, &[never("n = 10"), never("n = 15")]), "not seen", "neither gets there");
    let rule =
        "grows = { measure = { one-percent = 'rounds' }, series = ['FAB'], panels = ['dense', 'sparse'] }";
    let all = [reaching("sparse", "FAB", 900), reaching("dense", "FAB", 500)];
    assert_eq!(finding(rule, &all), "seen");
}

#[test]
fn ends_are_judged_by_one_per_cent_and_by_the_start() {
    let all = [
        reaching("lost", "ledger", 90),
        series("lost", "fab", &[(0, 1.0), (5, 0.001), (9, 0.5)]),
        series("lost", "away", &[(9, 5.0)]),
    ];
    assert_eq!(finding("reaches = { series = ['ledger'] }", &all), "seen");
    assert_eq!(finding("reaches = { series = ['away'], panels = ['lost'] }", &all), "not seen");
    assert_eq!(finding("misses = { series = ['fab', 'away'] }", &all), "seen", "it passed below on its way");
    assert_eq!(finding("misses = { series = ['ledger'] }", &all), "not seen");
    assert_eq!(finding("diverges = { series = ['away'] }", &all), "seen");
    assert_eq!(finding("diverges = { series = ['fab'] }", &all), "not seen");
}

#[test]
fn rings_are_judged_at_a_round_and_at_the_end() {
    let with = |early: f64, end: f64| {
        let all = [series("", "n = 10", &[(0, 1.0), (5000, early), (10_000, end)])];
        let below = "below = { series = ['n = 10'], round = 5000.0, error = 0.01, consensus = 0.001 }";
        [finding(below, &all), finding("stays = { within = 1.2 }", &all)]
    };
    assert_eq!(with(0.005, 0.005), ["seen", "seen"]);
    assert_eq!(with(0.05, 0.9), ["not seen", "not seen"]);
}

#[test]
fn printed_rounds_are_compared_and_so_is_divergence() {
    let with = |rounds: u32, end: f64, within: f64| {
        let mut all = [reaching("", "a", rounds), series("", "b", &[(0, 1.0), (9, end)])];
        all[0].series.work.reference = Some(100.0);
        all[1].series.work.paper = Some("diverges".into());
        finding(&format!("printed = {{ column = 'reference', within = {within} }}"), &all)
    };
    assert_eq!(with(110, 5.0, 0.2), "seen");
    assert_eq!(with(130, 5.0, 0.2), "in part: 1 of 2");
    assert_eq!(with(130, 0.001, 0.2), "not seen");
}
