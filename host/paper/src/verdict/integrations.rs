//! The ablation on integrations of techniques.

use super::{Verdict, find, finding, has_diverged, panels};
use crate::experiment::Axis;
use crate::method::MethodKind;
use crate::outcome::{RunOutcome, SeriesOutcome, Spread};

pub(super) fn verdicts(series: &[SeriesOutcome]) -> Vec<Verdict> {
    let statics = [MethodKind::StaticFab.label(), MethodKind::StaticFabKeptLinks.label()];
    let rivals = [MethodKind::PushSumFab.label(), MethodKind::PushPullSoba.label()];
    let mut diverging = (Vec::new(), Vec::new());
    let mut faster = (Vec::new(), Vec::new());
    let mut lower = (Vec::new(), Vec::new());
    let mut steps = (Vec::new(), Vec::new());
    for panel in panels(series) {
        for one in statics.iter().filter_map(|label| find(series, panel, label)) {
            diverging.0.push(has_diverged(one));
            let error = one.settled_error().mean;
            diverging.1.push(format!("{panel}, {}: settles at {error:.1e}", one.series.label));
        }
        let Some(fab) = find(series, panel, MethodKind::Fab.label()) else { continue };
        for rival in rivals.iter().filter_map(|label| find(series, panel, label)) {
            let name = &rival.series.label;
            // The time at which each first is within a tenth of where the worse of the two settles.
            let goal = 1.1 * fab.settled_error().mean.max(rival.settled_error().mean);
            let (own, other) = (seconds_to(fab, goal), seconds_to(rival, goal));
            faster.0.push(own < other);
            faster.1.push(format!("{panel}, to {goal:.1e}: FAB {own:.3} s, {name} {other:.3} s"));
            let (own, other) = (fab.settled_error().mean, rival.settled_error().mean);
            lower.0.push(own < other);
            lower.1.push(format!("{panel}: FAB {own:.1e}, {name} {other:.1e}"));
            steps.0.push(fab.steps.upper > 10.0 * rival.steps.upper);
            steps.1.push(format!("{panel}: FAB {:.1e}, {name} {:.1e}", fab.steps.upper, rival.steps.upper));
        }
    }
    let verdict = |claim: &str, (holds, measured): (Vec<bool>, Vec<String>), what: &str| Verdict {
        claim: claim.into(),
        measured: measured.join("; "),
        finding: finding(&holds, what),
    };
    vec![
        verdict("Static_FAB diverges", diverging, "steps and what static means"),
        verdict("FAB needs less time than PushSum_FAB and PushPull_SOBA", faster, "steps and the rival"),
        verdict(
            "FAB settles at a lower error than PushSum_FAB and PushPull_SOBA",
            lower,
            "steps and the rival",
        ),
        verdict(
            "FAB sustains steps 100 times as large as the others (here: more than 10 times, in the same units)",
            steps,
            "steps and the rival",
        ),
    ]
}

/// Mean seconds until the error is first below `goal`.
fn seconds_to(outcome: &SeriesOutcome, goal: f64) -> f64 {
    let seconds = |run: &RunOutcome| {
        let reached = run.points.iter().find(|point| point.error < goal);
        reached.unwrap_or(run.last()).on(Axis::Seconds)
    };
    Spread::of(outcome.runs.iter().map(seconds)).mean
}
