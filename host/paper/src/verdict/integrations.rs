//! The ablation on integrations of techniques.

use super::{Verdict, find, has_diverged, judged, panels};
use crate::method::MethodKind;
use crate::small::{Axis, MethodOutcome, RunOutcome};
use crate::spread::Spread;

pub(super) fn verdicts(series: &[MethodOutcome]) -> Vec<Verdict> {
    let statics = [MethodKind::StaticFab.label(), MethodKind::StaticFabKeptLinks.label()];
    let rivals = [MethodKind::PushSumFab.label(), MethodKind::PushPullSoba.label()];
    let (mut diverging, mut faster, mut lower, mut steps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for panel in panels(series) {
        for one in statics.iter().filter_map(|label| find(series, panel, label)) {
            let error = one.settled_error().mean;
            diverging
                .push((has_diverged(one), format!("{panel}, {}: settles at {error:.1e}", one.series.label)));
        }
        let Some(fab) = find(series, panel, MethodKind::Fab.label()) else { continue };
        for rival in rivals.iter().filter_map(|label| find(series, panel, label)) {
            let name = &rival.series.label;
            // The time at which each first is within a tenth of where the worse of the two settles.
            let goal = 1.1 * fab.settled_error().mean.max(rival.settled_error().mean);
            let (own, other) = (seconds_to(fab, goal), seconds_to(rival, goal));
            faster
                .push((own < other, format!("{panel}, to {goal:.1e}: FAB {own:.3} s, {name} {other:.3} s")));
            let (own, other) = (fab.settled_error().mean, rival.settled_error().mean);
            lower.push((own < other, format!("{panel}: FAB {own:.1e}, {name} {other:.1e}")));
            let (own, other) = (fab.choice.upper, rival.choice.upper);
            steps.push((own > 10.0 * other, format!("{panel}: FAB {own:.1e}, {name} {other:.1e}")));
        }
    }
    vec![
        judged("Static_FAB diverges", "steps and what static means", diverging),
        judged("FAB needs less time than PushSum_FAB and PushPull_SOBA", "steps and the rival", faster),
        judged(
            "FAB settles at a lower error than PushSum_FAB and PushPull_SOBA",
            "steps and the rival",
            lower,
        ),
        judged(
            "FAB sustains steps 100 times as large as the others (here: more than 10 times, in the same units)",
            "steps and the rival",
            steps,
        ),
    ]
}

/// Mean seconds until the error is first below `goal`; infinite where a run never gets there.
fn seconds_to(outcome: &MethodOutcome, goal: f64) -> f64 {
    let seconds = |run: &RunOutcome| {
        let reached = run.points.iter().find(|point| point.error < goal);
        reached.map_or(f64::INFINITY, |point| point.on(Axis::Seconds))
    };
    Spread::of(outcome.runs.iter().map(seconds)).mean
}
