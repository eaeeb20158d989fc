//! Every rule, on outcomes that are made up.

use super::*;
use fabswarm_large::device::cuda::Precision;

use crate::experiment::Experiment;
use crate::experiment_config::ExperimentConfig;
use crate::method::{MethodKind, StepSizes};
use crate::small::{MethodOutcome, MethodWorkload, Point, RunOutcome};
use crate::training::{TrainingPoint, TrainingRunOutcome, TrainingSeries, TrainingWorkload};
use crate::verdict;
use crate::workload::{Keys, Series};

/// The finding of a rule as files have it.
fn finding<W: Workload>(rule: &str, margin: f64, all: &[SeriesOutcome<W>]) -> String {
    #[derive(Deserialize)]
    #[serde(bound = "")]
    struct RuleFile<W: Workload> {
        rule: ClaimRule<W>,
    }
    let file: RuleFile<W> = toml_edit::de::from_str(&format!("rule = {{ {rule} }}")).unwrap();
    verdict::finding(&file.rule.cases(margin, all))
}

fn found(rule: &str, all: &[MethodOutcome]) -> String {
    finding(rule, 0.05, all)
}

/// Five equal runs with these errors by iterations, of which each is a round, a float and a second.
fn series(panel: &str, label: &str, errors: &[(u32, f64)]) -> MethodOutcome {
    let point = |&(rounds, error): &(u32, f64)| Point {
        iterations: rounds,
        rounds,
        floats: rounds.into(),
        seconds: rounds.into(),
        error,
        consensus: error / 100.0,
        stationarity: Some(error),
    };
    let points: Vec<Point> = errors.iter().map(point).collect();
    let one_percent = points.iter().find(|point| point.error < 0.01).copied();
    let setting = ExperimentConfig::default();
    let work = MethodWorkload { method: MethodKind::Fab, steps: None, setting, paper: None, reference: None };
    MethodOutcome {
        series: Series { panel: panel.into(), label: label.into(), searched: work.clone(), work },
        choice: StepSizes { upper: 1.0, lower: 1.0, twin: None },
        runs: vec![RunOutcome { points, one_percent, memory: errors.len(), has_diverged: false }; 5],
    }
}

/// A series that comes below one per cent at `rounds`.
fn reaching(panel: &str, label: &str, rounds: u32) -> MethodOutcome {
    series(panel, label, &[(0, 1.0), (rounds, 0.005)])
}

/// Five equal runs that are at `accuracy` from second `seconds` on.
fn training(panel: &str, label: &str, accuracy: f64, seconds: f64) -> TrainingSeries {
    let point = |round: u32, seconds: f64, accuracy: f64| TrainingPoint {
        round,
        epoch: round.into(),
        seconds,
        bytes: 0,
        accuracy,
        auc: None,
        regularisation: Some(accuracy / 10.0),
    };
    let points = vec![point(0, 0.0, 0.1), point(1, seconds, accuracy), point(2, 100.0, accuracy)];
    let run = TrainingRunOutcome { points, has_diverged: false, memory_bytes: None, device: String::new() };
    let work = TrainingWorkload { keys: Keys::new(), search: Vec::new(), precision: Precision::default() };
    let series = Series { panel: panel.into(), label: label.into(), searched: work.clone(), work };
    TrainingSeries { series, choice: Keys::new(), runs: vec![run; 5] }
}

/// The finding of a rule on FAB and two others in two panels, by their accuracies.
fn trained(rule: &str, panels: [[f64; 3]; 2]) -> String {
    let labels = ["FAB", "Push-Pull", "Push-SGD"];
    let all = ["first", "last"].into_iter().zip(panels).flat_map(|(panel, accuracies)| {
        labels
            .into_iter()
            .zip(accuracies)
            .map(move |(label, accuracy)| training(panel, label, accuracy, 100.0 * accuracy))
    });
    finding(rule, 0.005, &all.collect::<Vec<_>>())
}

#[test]
fn every_claim_names_series_and_panels_that_there_are() {
    fn check<W: Workload>() {
        let experiments = Experiment::<W>::all(false).unwrap();
        for (experiment, (name, text)) in experiments.iter().zip(W::FILES) {
            let file: Keys = toml_edit::de::from_str(text).unwrap();
            for claim in file.get("claim").and_then(|claims| claims.as_array()).into_iter().flatten() {
                for fields in claim["rule"].as_object().unwrap().values() {
                    let named = |key: &str| -> Vec<String> {
                        let value = fields.get(key).cloned().unwrap_or_default();
                        let one = value.as_str().map(|one| vec![one.to_owned()]);
                        one.or_else(|| serde_json::from_value(value).ok()).unwrap_or_default()
                    };
                    for label in ["of", "than", "series"].into_iter().flat_map(named) {
                        let mut labels = experiment.series.iter().map(|series| &series.label);
                        assert!(
                            labels.any(|one| is_meant(std::slice::from_ref(&label), one)),
                            "{name}: {label}"
                        );
                    }
                    let missing =
                        named("panels").into_iter().find(|one| !experiment.panels().contains(&one.as_str()));
                    assert_eq!(missing, None, "{name}");
                }
            }
        }
    }
    check::<MethodWorkload>();
    check::<TrainingWorkload>();
}

#[test]
fn the_closest_of_all_that_have_moved_decides() {
    let with = |own: f64, rival: f64| {
        let end = |label, error| series("", label, &[(0, 1.0), (100, error)]);
        let all = [end("FAB", own), end("DL-a", rival), end("DL-b", 0.5), end("DL-c", 1.0)];
        found("better = { measure = 'settled-error', of = ['FAB'], than = ['DL-*'] }", &all)
    };
    assert_eq!(with(0.01, 0.02), "seen");
    assert_eq!(with(0.01, 0.0102), "tie");
    assert_eq!(with(0.02, 0.01), "not seen");
    let by = "better = { measure = 'settled-error', of = ['a'], than = ['b'], by = 10.0 }";
    let all = [series("", "a", &[(9, 1e-4)]), series("", "b", &[(9, 5e-4)])];
    assert_eq!(found(by, &all), "not seen", "five times lower is not ten times");
    assert_eq!(found(&by.replace("10.0", "4.0"), &all), "seen");
    let still = [series("", "FAB", &[(9, 0.99)]), series("", "DL-a", &[(9, 1.0)])];
    let rule = "better = { measure = 'settled-error', of = ['FAB'], than = ['DL-*'] }";
    assert_eq!(found(rule, &still), "tie", "no case");
    assert_eq!(found(&rule.replace("settled-error", "memory"), &still), "tie", "as many numbers");
    let rule = "better = { measure = 'accuracy', of = ['FAB'], than = ['Push-*'] }";
    assert_eq!(trained(rule, [[0.9, 0.8, 0.7], [0.9, 0.7, 0.8]]), "seen");
    assert_eq!(trained(rule, [[0.9, 0.8, 0.898], [0.9, 0.7, 0.8]]), "in part: 1 of 2, and 1 tied");
    assert_eq!(trained(rule, [[0.7, 0.8, 0.1], [0.7, 0.1, 0.8]]), "not seen");
}

#[test]
fn measures_are_taken_at_the_same_place() {
    let sparse = series("", "FAB", &[(0, 1.0), (800, 0.13), (1000, 0.04), (20_000, 0.002)]);
    let dense = series("", "DL", &[(0, 1.0), (10, 0.5), (952, 0.08)]);
    let all = [sparse, dense];
    let better = |measure: &str, of: &str, than: &str| {
        found(&format!("better = {{ measure = {measure}, of = ['{of}'], than = ['{than}'] }}"), &all)
    };
    // FAB falls below between its samples at 800 and 1,000, before the other ends at 952.
    assert_eq!(better("{ error-at-end = 'iterations' }", "FAB", "DL"), "seen");
    assert_eq!(better("{ error-at = ['iterations', 10.0] }", "DL", "FAB"), "seen");
    assert_eq!(better("{ error-at = ['iterations', 10.0] }", "FAB", "DL"), "not seen");
    assert_eq!(better("{ one-percent = 'rounds' }", "FAB", "DL"), "seen", "the other never does");
    // At second 952, and at 1,000.
    assert_eq!(better("'seconds-to-worse'", "DL", "FAB"), "seen");
    assert_eq!(better("'inverse-step'", "DL", "FAB"), "tie", "equal steps");
    assert_eq!(better("'memory'", "DL", "FAB"), "seen", "three numbers and four");
    let mut all = [training("p", "FAB", 0.8, 5.0), training("p", "Push-Pull", 0.8, 50.0)];
    let sooner = |of: &str, than: &str, all: &[TrainingSeries]| {
        let rule = format!("better = {{ measure = 'seconds-to-both', of = ['{of}'], than = ['{than}'] }}");
        finding(&rule, 0.005, all)
    };
    assert_eq!(sooner("FAB", "Push-*", &all), "seen");
    assert_eq!(sooner("Push-*", "FAB", &all), "not seen");
    // Each seed has its own level: those below the mean reach it too.
    for one in &mut all {
        for (run, seed) in one.runs.iter_mut().zip(0..) {
            run.points.iter_mut().for_each(|point| point.accuracy -= 0.01 * f64::from(seed));
        }
    }
    assert_eq!(sooner("FAB", "Push-*", &all), "seen");
}

#[test]
fn alike_takes_both_sides_and_something_that_moved() {
    let with = |first: f64, second: f64| {
        let all = [series("", "a", &[(9, first)]), series("", "b", &[(9, second)])];
        found("alike = { measure = 'settled-error', series = ['a', 'b'], within = 1.25 }", &all)
    };
    assert_eq!(with(0.10, 0.11), "seen");
    assert_eq!([with(0.10, 0.2), with(0.2, 0.1)], ["not seen"; 2]);
    assert_eq!(with(1.0, 1.0), "tie", "no case");
}

#[test]
fn what_worsens_goes_along_series_or_panels() {
    let rule = "worsens = { measure = { one-percent = 'rounds' }, series = ['n = 10', 'n = 15'] }";
    let with = |first, second| found(rule, &[reaching("", "n = 10", first), reaching("", "n = 15", second)]);
    assert_eq!([with(100, 200), with(100, 102), with(200, 100)], ["seen", "tie", "not seen"]);
    let never = |label| series("", label, &[(9, 0.5)]);
    assert_eq!(found(rule, &[never("n = 10"), never("n = 15")]), "not seen", "neither gets there");
    let rule =
        "worsens = { measure = { one-percent = 'rounds' }, series = ['FAB'], panels = ['dense', 'sparse'] }";
    let all = [reaching("sparse", "FAB", 900), reaching("dense", "FAB", 500)];
    assert_eq!(found(rule, &all), "seen");
}

#[test]
fn leads_grow_over_the_best_and_means_stay_in_a_range() {
    let rule = "lead-grows = { measure = 'accuracy', of = 'FAB', than = ['Push-*'] }";
    assert_eq!(trained(rule, [[0.9, 0.8, 0.7], [0.8, 0.5, 0.6]]), "seen");
    assert_eq!(trained(rule, [[0.9, 0.8, 0.7], [0.8, 0.7, 0.6]]), "tie");
    let back = rule.replace(" }", ", panels = ['last', 'first'] }");
    assert_eq!(trained(&back, [[0.9, 0.8, 0.7], [0.8, 0.5, 0.6]]), "not seen");
    let rule = "unchanged = { measure = 'accuracy', series = ['*'], within = 0.01 }";
    assert_eq!(trained(rule, [[0.9, 0.8, 0.7], [0.899, 0.795, 0.5]]), "in part: 2 of 3");
    let rule = "each = { series = ['FAB'], is = { regularisation-between = [0.08, 0.2] } }";
    assert_eq!(trained(rule, [[0.9, 0.8, 0.7], [0.5, 0.5, 0.6]]), "in part: 1 of 2");
}

#[test]
fn ends_are_judged_by_one_per_cent_and_by_the_start() {
    let all = [
        reaching("lost", "ledger", 90),
        series("lost", "fab", &[(0, 1.0), (5, 0.001), (9, 0.5)]),
        series("lost", "away", &[(9, 5.0)]),
    ];
    let each = |label: &str, is: &str| {
        found(&format!("each = {{ series = ['{label}'], panels = ['lost'], is = '{is}' }}"), &all)
    };
    assert_eq!([each("ledger", "reaches"), each("away", "reaches")], ["seen", "not seen"]);
    assert_eq!(each("fab", "misses"), "seen", "it passed below on its way");
    assert_eq!(each("ledger", "misses"), "not seen");
    assert_eq!([each("away", "diverges"), each("fab", "diverges")], ["seen", "not seen"]);
}

#[test]
fn rings_are_judged_at_a_round_and_at_the_end() {
    let with = |early: f64, end: f64| {
        let all = [series("", "n = 10", &[(0, 1.0), (5000, early), (10_000, end)])];
        let conditions =
            ["{ below = { round = 5000.0, error = 0.01, consensus = 0.001 } }", "{ stays = 1.2 }"];
        conditions.map(|is| found(&format!("each = {{ series = ['*'], is = {is} }}"), &all))
    };
    assert_eq!(with(0.005, 0.005), ["seen", "seen"]);
    assert_eq!(with(0.05, 0.9), ["not seen", "not seen"]);
}

#[test]
fn rates_are_slopes_between_two_rounds() {
    let with = |late: f64, quantity: &str| {
        let all = [series("", "FAB", &[(0, 1.0), (100, 0.1), (10_000, late), (20_000, 0.0)])];
        let is = format!(
            "{{ falls = {{ quantity = '{quantity}', from = 100.0, to = 10000.0, rate = 1.0, within = 0.05 }} }}"
        );
        found(&format!("each = {{ series = ['FAB'], is = {is} }}"), &all)
    };
    assert_eq!(with(0.001, "stationarity"), "seen", "by a hundred, in a hundred times as many rounds");
    assert_eq!(with(0.002, "stationarity"), "not seen");
    assert_eq!(with(0.01, "consensus"), "seen", "it is squared");
    assert_eq!(with(0.05, "consensus"), "not seen");
}

#[test]
fn the_start_of_a_run_where_all_agree_is_not_its_least_consensus_error() {
    let mut all = [series("", "FAB", &[(0, 1.0), (100, 0.1), (10_000, 0.001)])];
    all[0].runs.iter_mut().for_each(|run| run.points[0].consensus = 0.0);
    let is = "{ falls = { quantity = 'consensus', from = 100.0, to = 10000.0, rate = 1.0, within = 0.05 } }";
    assert_eq!(found(&format!("each = {{ series = ['FAB'], is = {is} }}"), &all), "seen");
}

#[test]
fn printed_rounds_are_compared_and_so_is_divergence() {
    let with = |rounds: u32, end: f64, within: f64| {
        let mut all = [reaching("", "a", rounds), series("", "b", &[(0, 1.0), (9, end)])];
        all[0].series.work.reference = Some(100.0);
        all[1].series.work.paper = Some("diverges".into());
        let is = format!("{{ printed = {{ column = 'reference', within = {within} }} }}");
        found(&format!("each = {{ series = ['*'], is = {is} }}"), &all)
    };
    assert_eq!(with(110, 5.0, 0.2), "seen");
    assert_eq!(with(130, 5.0, 0.2), "in part: 1 of 2");
    assert_eq!(with(130, 0.001, 0.2), "not seen");
}
