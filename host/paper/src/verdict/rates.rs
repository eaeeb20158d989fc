//! The rates of both theorems, as slopes of log ‖∇F*‖² over log K.

use super::{Verdict, finding};
use crate::method::MethodKind;
use crate::small::{MethodOutcome, RunOutcome};

pub(super) fn verdicts(series: &[MethodOutcome]) -> Vec<Verdict> {
    let cases = [
        (MethodKind::Fab, -2.0 / 3.0, "FAB: min ‖∇F*‖² falls at least like K^(−2/3)"),
        (MethodKind::PushPull, -1.0, "Push-Pull: min ‖∇F‖² falls at least like 1/K"),
    ];
    let verdict = |(method, rate, claim): (MethodKind, f64, &str)| {
        let points: Vec<(f64, f64)> = series
            .iter()
            .filter(|one| one.series.work.method == method)
            .map(|one| (f64::from(one.series.work.setting.rounds), mean_least(&one.runs)))
            .collect();
        let slopes: Vec<f64> = points
            .windows(2)
            .map(|pair| (pair[1].1 / pair[0].1).ln() / (pair[1].0 / pair[0].0).ln())
            .collect();
        // A tenth of the rate is left to the constants of a finite K.
        let holds: Vec<bool> = slopes.iter().map(|slope| *slope < 0.9 * rate).collect();
        let values = points.iter().map(|(rounds, least)| format!("K = {rounds}: {least:.1e}"));
        let slopes = slopes.iter().map(|slope| format!("{slope:.2}"));
        Verdict {
            claim: claim.into(),
            measured: format!(
                "slopes {} ({})",
                slopes.collect::<Vec<_>>().join(", "),
                values.collect::<Vec<_>>().join(", ")
            ),
            finding: finding(&holds, "K"),
        }
    };
    cases.map(verdict).into()
}

/// A run that diverged may have passed a small gradient on its way, which says nothing.
fn mean_least(runs: &[RunOutcome]) -> f64 {
    let least = |run: &RunOutcome| run.least_stationarity.filter(|_| !run.has_diverged);
    runs.iter().map(|run| least(run).unwrap_or(f64::INFINITY)).sum::<f64>() / runs.len() as f64
}
