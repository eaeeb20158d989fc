//! The changes to FAB, one at a time and together: our own claims.

use super::{Verdict, find, judged, panels, rounds_or_why};
use crate::small::{Axis, MethodOutcome};

const PUBLISHED: &str = "published FAB";
const BEST: &str = "all four, larger steps";
const SILENT: &str = "and silent when still";

pub(super) fn verdicts(series: &[MethodOutcome]) -> Vec<Verdict> {
    let has_ledger = |one: &MethodOutcome| {
        one.series.label == "+ ledger" || one.series.label.starts_with("all") || one.series.label == SILENT
    };
    let is_lossy = |one: &&MethodOutcome| one.series.work.setting.loss > 0.0;
    let where_lost = series.iter().filter(is_lossy).map(|one| {
        let is_there = one.converged() == one.runs.len();
        (is_there == has_ledger(one), format!("{} {}", one.series.label, rounds_or_why(one)))
    });
    let floors = panels(series).into_iter().filter_map(|panel| {
        let error = |label| find(series, panel, label).map(|one| one.settled_error().mean);
        let (published, symmetric) = (error(PUBLISHED)?, error("+ symmetric penalty")?);
        let is_lossless = find(series, panel, PUBLISHED)?.series.work.setting.loss == 0.0;
        let measured = format!("{panel}: {published:.1e}, {symmetric:.1e}");
        is_lossless.then_some((10.0 * symmetric < published, measured))
    });
    let quickest = panels(series).into_iter().filter_map(|panel| {
        let rounds_of = |one: &MethodOutcome| {
            one.to_one_percent(Axis::Rounds).map_or(f64::INFINITY, |rounds| rounds.mean)
        };
        let best = rounds_of(find(series, panel, BEST)?);
        let others = series.iter().filter(|one| one.series.panel == panel && one.series.label != BEST);
        let least = others.map(rounds_of).fold(f64::INFINITY, f64::min);
        Some((best < least, format!("{panel}: {best:.0}, the next {least:.0}")))
    });
    let sent = panels(series).into_iter().filter_map(|panel| {
        let floats =
            |label| find(series, panel, label)?.to_one_percent(Axis::Floats).map(|floats| floats.mean);
        let (usual, silent) = (floats(BEST)?, floats(SILENT)?);
        Some((silent < 0.9 * usual, format!("{panel}: {silent:.2e}, else {usual:.2e}")))
    });
    vec![
        judged(
            "Where frames are lost, 1 % is reached with the ledger and only with it",
            "the change",
            where_lost,
        ),
        judged("The symmetric penalty alone lowers the error without loss tenfold", "the panel", floors),
        judged(
            "All four with larger steps need fewer rounds to 1 % than any other row",
            "the panel",
            quickest,
        ),
        judged(
            "Agents that stay silent when still reach 1 % with a tenth fewer floats, at least",
            "the panel",
            sent,
        ),
    ]
}
