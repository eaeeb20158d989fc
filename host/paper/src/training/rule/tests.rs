//! Every rule, on outcomes that are made up.

use super::*;
use crate::experiment::{Experiment, Keys, Series};
use crate::training::{TrainingPoint, TrainingWorkload};
use crate::verdict::Finding;

/// Five equal runs that are at `accuracy` from second `seconds` on.
fn series(panel: &str, label: &str, accuracy: f64, seconds: f64) -> TrainingSeries {
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
    let work = TrainingWorkload { keys: Keys::new(), search: Vec::new() };
    let series = Series { panel: panel.into(), label: label.into(), work };
    TrainingSeries { series, choice: Keys::new(), runs: vec![run; 5] }
}

/// The finding of a rule on FAB and two others in two panels, by their accuracies.
fn finding(rule: &str, panels: [[f64; 3]; 2]) -> String {
    #[derive(Deserialize)]
    struct RuleFile {
        rule: TrainingRule,
    }
    let file: RuleFile = toml_edit::de::from_str(&format!("rule = {{ {rule} }}")).unwrap();
    let mut all = Vec::new();
    for (panel, accuracies) in ["first", "last"].into_iter().zip(panels) {
        for (label, accuracy) in ["FAB", "Push-Pull", "Push-SGD"].into_iter().zip(accuracies) {
            all.push(series(panel, label, accuracy, 100.0 * accuracy));
        }
    }
    Finding::of(&file.rule.cases(0.005, &all)).to_string()
}

#[test]
fn every_claim_names_series_that_there_are() {
    for experiment in Experiment::<TrainingWorkload>::all(false).unwrap() {
        assert!(experiment.margin > 0.0, "{}", experiment.name);
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
fn accuracy_is_compared_with_the_closest() {
    let rule = "more-accurate = { of = 'FAB', than = ['Push-*'] }";
    assert_eq!(finding(rule, [[0.9, 0.8, 0.7], [0.9, 0.7, 0.8]]), "seen");
    assert_eq!(finding(rule, [[0.9, 0.8, 0.898], [0.9, 0.7, 0.8]]), "in part: 1 of 2, and 1 tied");
    assert_eq!(finding(rule, [[0.7, 0.8, 0.1], [0.7, 0.1, 0.8]]), "not seen");
}

#[test]
fn leads_grow_over_the_best() {
    let rule = "lead-grows = { of = 'FAB', than = ['Push-*'] }";
    assert_eq!(finding(rule, [[0.9, 0.8, 0.7], [0.8, 0.5, 0.6]]), "seen");
    assert_eq!(finding(rule, [[0.9, 0.8, 0.7], [0.8, 0.7, 0.6]]), "tie");
    let back = "lead-grows = { of = 'FAB', than = ['Push-*'], panels = ['last', 'first'] }";
    assert_eq!(finding(back, [[0.9, 0.8, 0.7], [0.8, 0.5, 0.6]]), "not seen");
}

#[test]
fn losses_between_panels_are_compared_and_so_are_ranges() {
    let rule = "loses-less = { of = 'FAB', than = ['Push-*'] }";
    assert_eq!(finding(rule, [[0.9, 0.8, 0.7], [0.85, 0.5, 0.6]]), "seen");
    assert_eq!(finding(rule, [[0.9, 0.8, 0.7], [0.85, 0.75, 0.7]]), "not seen");
    let rule = "unchanged = { series = ['*'], within = 0.01 }";
    assert_eq!(finding(rule, [[0.9, 0.8, 0.7], [0.899, 0.795, 0.5]]), "in part: 2 of 3");
}

#[test]
fn the_time_is_that_to_what_both_reach() {
    let all = [series("p", "FAB", 0.8, 5.0), series("p", "Push-Pull", 0.8, 50.0)];
    let sooner = |of: &str, than: &str| {
        let (of, than) = (vec![of.to_owned()], vec![than.to_owned()]);
        Finding::of(&TrainingRule::Sooner { of, than, panels: Vec::new() }.cases(0.005, &all)).to_string()
    };
    assert_eq!(sooner("FAB", "Push-*"), "seen");
    assert_eq!(sooner("Push-*", "FAB"), "not seen");
}

#[test]
fn a_learned_value_ends_between_two() {
    let rule = "ends-between = { of = 'FAB', least = 0.08, most = 0.2 }";
    assert_eq!(finding(rule, [[0.9, 0.8, 0.7], [0.85, 0.5, 0.6]]), "seen");
    assert_eq!(finding(rule, [[0.9, 0.8, 0.7], [0.5, 0.5, 0.6]]), "in part: 1 of 2");
}
