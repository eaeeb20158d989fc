//! The appendix' table on the sensitivity of FAB.

use super::{Finding, Verdict, finding, has_diverged, rounds_or_why};
use crate::small::{Axis, MethodOutcome};

pub(super) fn verdicts(series: &[MethodOutcome]) -> Vec<Verdict> {
    let steps = |one: &MethodOutcome| {
        let lambda = one.series.work.setting.lambda;
        [
            lambda,
            (1e6 * lambda * one.choice.upper).round() / 1e6,
            one.choice.lower,
            one.choice.twin.unwrap_or(one.choice.lower),
        ]
    };
    let group = |is_in: fn([f64; 4]) -> bool| -> Vec<&MethodOutcome> {
        series.iter().filter(|one| is_in(steps(one))).collect()
    };
    let by_lambda = group(|[_, x, y, z]| (x, y, z) == (0.1, 0.1, 0.1));
    let by_x = group(|[lambda, _, y, z]| (lambda, y, z) == (60.0, 0.1, 0.1));
    let both = group(|[lambda, x, y, z]| (lambda, x) == (60.0, 0.1) && y == z);
    let unequal = group(|[_, _, y, z]| y != z);
    let mut verdicts = vec![reference(series), paper(series)];
    verdicts.extend(monotone(
        "a larger λ slows convergence down",
        by_lambda,
        |one| one.series.work.setting.lambda,
        true,
    ));
    verdicts.extend(monotone("a larger η_x speeds convergence up", by_x, |one| one.choice.upper, false));
    let slowed: Vec<bool> = unequal
        .iter()
        .map(|one| {
            has_diverged(one) || one.to_one_percent(Axis::Rounds).is_none_or(|rounds| rounds.mean > 6000.0)
        })
        .collect();
    if !slowed.is_empty() {
        verdicts.push(Verdict {
            claim: "η_y and η_z that differ by a fifth or more slow FAB down a lot or make it diverge".into(),
            measured: listed(&unequal),
            finding: finding(&slowed, "the row"),
        });
    }
    let robust: Vec<bool> = both.iter().map(|one| one.converged() == one.runs.len()).collect();
    verdicts.push(Verdict {
        claim: "FAB stays robust where η_y and η_z are scaled together".into(),
        measured: listed(&both),
        finding: finding(&robust, "the row"),
    });
    verdicts.extend(monotone(
        "η_y = η_z from 0.1 up slow FAB down",
        both.into_iter().filter(|one| one.choice.lower >= 0.1).collect(),
        |one| one.choice.lower,
        true,
    ));
    verdicts
}

fn listed(series: &[&MethodOutcome]) -> String {
    series
        .iter()
        .map(|one| format!("{}: {}", one.series.label, rounds_or_why(one)))
        .collect::<Vec<_>>()
        .join("; ")
}

/// Whether rounds grow, or shrink, by more than 2 % along a quantity.
fn monotone(
    claim: &str,
    mut series: Vec<&MethodOutcome>,
    along: fn(&MethodOutcome) -> f64,
    is_growing: bool,
) -> Option<Verdict> {
    series.sort_by(|a, b| along(a).total_cmp(&along(b)));
    let rounds: Vec<f64> =
        series.iter().filter_map(|one| one.to_one_percent(Axis::Rounds)).map(|rounds| rounds.mean).collect();
    let holds: Vec<bool> = rounds
        .windows(2)
        .map(|pair| if is_growing { pair[1] > 1.02 * pair[0] } else { pair[1] < 0.98 * pair[0] })
        .collect();
    (!holds.is_empty()).then(|| Verdict {
        claim: claim.into(),
        measured: listed(&series),
        finding: finding(&holds, "the step between two rows"),
    })
}

/// How far each row is from the independent implementation.
fn reference(series: &[MethodOutcome]) -> Verdict {
    let mut holds = Vec::new();
    let mut worst = (0.0, "none");
    for one in series {
        let holds_here = match (one.series.work.reference, one.to_one_percent(Axis::Rounds)) {
            (Some(reference), Some(rounds)) => {
                let away = rounds.mean / reference - 1.0;
                if away.abs() > f64::abs(worst.0) {
                    worst = (away, one.series.label.as_str());
                }
                away.abs() <= 0.2
            }
            (None, None) => has_diverged(one) == (one.series.work.paper.as_deref() == Some("diverges")),
            _ => false,
        };
        holds.push(holds_here);
    }
    Verdict {
        claim: "(Our own check.) Every row is within 20 % of an independent implementation, and the same rows diverge".into(),
        measured: format!(
            "{} of {} rows; farthest: {:+.0} % at {}",
            holds.iter().filter(|holds| **holds).count(),
            holds.len(),
            100.0 * worst.0,
            worst.1
        ),
        finding: finding(&holds, "the row"),
    }
}

fn paper(series: &[MethodOutcome]) -> Verdict {
    let mut holds = Vec::new();
    let mut apart = Vec::new();
    for one in series {
        let printed = one.series.work.paper.as_deref().unwrap_or_default();
        let agrees = match (printed.parse::<f64>(), one.to_one_percent(Axis::Rounds)) {
            (Ok(printed), Some(rounds)) => (rounds.mean / printed - 1.0).abs() <= 0.2,
            (Err(_), None) => has_diverged(one) == (printed == "diverges"),
            _ => false,
        };
        holds.push(agrees);
        if !agrees {
            apart.push(format!("{}: {} (paper {printed})", one.series.label, rounds_or_why(one)));
        }
    }
    let measured =
        if apart.is_empty() { "all rows".into() } else { format!("farther apart: {}", apart.join("; ")) };
    let finding = match finding(&holds, "the row") {
        Finding::NotSeen if series.is_empty() => Finding::Seen,
        other => other,
    };
    Verdict { claim: "The printed numbers, to 20 %".into(), measured, finding }
}
