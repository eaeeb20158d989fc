//! The ablations on directed rings: the number of agents and small weights.

use super::{Verdict, finding, judged, panels, rounds_or_why};
use crate::small::{Axis, MethodOutcome};

pub(super) fn slower_with_more_agents(series: &[MethodOutcome]) -> Verdict {
    slower_along(series, "FAB converges slower on a ring of more agents, but not exponentially slower", true)
}

pub(super) fn slower_with_smaller_weights(series: &[MethodOutcome]) -> Verdict {
    slower_along(series, "FAB converges slower where the least weights a and b are smaller", false)
}

/// Our own claims on gathering and descending in turn.
pub(super) fn verdicts_in_turn(series: &[MethodOutcome]) -> Vec<Verdict> {
    let (mut soon, mut never_rising) = (Vec::new(), Vec::new());
    for one in series {
        let name = format!("{}, {}", one.series.label, one.series.panel);
        let curve = one.curve();
        let Some(end) = curve.last() else { continue };
        if one.series.work.setting.agents <= 30 {
            let at = curve.iter().take_while(|point| point.on(Axis::Rounds) <= 5000.0).last().unwrap_or(end);
            let (error, consensus) = (at.error.mean, at.consensus.mean);
            let measured = format!("{name}: error {error:.1e}, consensus {consensus:.1e}");
            soon.push((error < 0.01 && consensus < 0.001, measured));
        }
        // The penalty keeps the error at a floor of order 1/λ: once there, it must not leave it again.
        let least = curve.iter().map(|point| point.error.mean).fold(f64::INFINITY, f64::min);
        let measured = format!(
            "{name}: {} rounds to 1 %, least error {least:.1e}, at the end {:.1e}, consensus {:.1e}",
            rounds_or_why(one),
            end.error.mean,
            end.consensus.mean
        );
        never_rising.push((end.error.mean < 1.2 * least, measured));
    }
    let early = "Rings of up to 30 agents are below 1 % error and 0.1 % consensus error at round 5,000, with and without loss";
    vec![
        judged(early, "n and loss", soon),
        judged("No ring of up to 100 agents leaves its least error again", "n and loss", never_rising),
    ]
}

/// Whether rounds grow, or shrink, from each series of a panel to the next by more than 2 %.
fn slower_along(series: &[MethodOutcome], claim: &str, is_growing: bool) -> Verdict {
    let mut holds = Vec::new();
    let mut measured = Vec::new();
    for panel in panels(series) {
        let here: Vec<&MethodOutcome> = series.iter().filter(|one| one.series.panel == panel).collect();
        let rounds = |one: &MethodOutcome| {
            (one.converged() == one.runs.len()).then(|| one.to_one_percent(Axis::Rounds)).flatten()
        };
        for pair in here.windows(2) {
            holds.push(rounds(pair[0]).zip(rounds(pair[1])).is_some_and(|(first, second)| {
                let ratio = second.mean / first.mean;
                if is_growing { ratio > 1.02 } else { ratio < 0.98 }
            }));
        }
        let list = here.iter().map(|one| format!("{}: {}", one.series.label, rounds_or_why(one)));
        measured.push(format!("{panel}: {}", list.collect::<Vec<_>>().join(", ")));
    }
    Verdict { claim: claim.into(), measured: measured.join("; "), finding: finding(&holds, "steps") }
}
