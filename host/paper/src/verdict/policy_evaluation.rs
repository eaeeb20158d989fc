//! The paper's section on policy evaluation, its main figure and those on ω and ν in the appendix.

use super::{Verdict, find, finding, panels};
use crate::experiment::Axis;
use crate::method::MethodKind;
use crate::outcome::SeriesOutcome;

pub(super) fn verdicts(series: &[SeriesOutcome]) -> Vec<Verdict> {
    let mut verdicts = vec![
        against_double_loops(series, "at equal communication (floats over all links)", Axis::Floats),
        against_double_loops(
            series,
            "after as many iterations (T = 20 rounds each for double loops)",
            Axis::Iterations,
        ),
        against_single_level(series),
        slower_start(series),
        saga_like_sgd(series),
    ];
    verdicts.extend(faster_with_more_links(series));
    verdicts
}

/// The claims of the larger swarms.
pub(super) fn verdicts_at_scale(series: &[SeriesOutcome]) -> Vec<Verdict> {
    vec![
        against_double_loops(series, "at equal communication (floats over all links)", Axis::Floats),
        against_double_loops(
            series,
            "after as many iterations (T = 20 rounds each for double loops)",
            Axis::Iterations,
        ),
        against_double_loops(series, "after as many seconds", Axis::Seconds),
        saga_like_sgd(series),
    ]
}

fn fab() -> &'static str {
    MethodKind::Fab.label()
}

fn is_double_loop(outcome: &SeriesOutcome) -> bool {
    outcome.series.label.starts_with("DL-")
}

/// FAB's error and the best double loop's, where the poorer of the two has used up its budget.
fn against_double_loops(series: &[SeriesOutcome], how: &str, axis: Axis) -> Verdict {
    let mut holds = Vec::new();
    let mut measured = Vec::new();
    for panel in panels(series) {
        let Some(own) = find(series, panel, fab()) else { continue };
        let end = |outcome: &SeriesOutcome| {
            outcome.runs.iter().map(|run| run.last().on(axis)).fold(f64::INFINITY, f64::min)
        };
        let rivals = series.iter().filter(|one| one.series.panel == panel && is_double_loop(one));
        let compared = rivals.map(|rival| {
            let amount = end(own).min(end(rival));
            (rival.series.label.as_str(), own.error_at(axis, amount), rival.error_at(axis, amount))
        });
        let Some((label, own, rival)) = compared.min_by(|a, b| (a.2 / a.1).total_cmp(&(b.2 / b.1))) else {
            continue;
        };
        holds.push(own < rival);
        measured.push(format!("{panel}: FAB {own:.1e}, {label} {rival:.1e}"));
    }
    Verdict {
        claim: format!("FAB ends with a lower error than every double-loop baseline, {how}"),
        measured: measured.join("; "),
        finding: finding(&holds, "the panel"),
    }
}

fn against_single_level(series: &[SeriesOutcome]) -> Verdict {
    let label = MethodKind::PushPull.label();
    let mut holds = Vec::new();
    let mut measured = Vec::new();
    for panel in panels(series) {
        if let (Some(own), Some(single)) = (find(series, panel, fab()), find(series, panel, label)) {
            let (own, single) = (own.settled_error().mean, single.settled_error().mean);
            holds.push(own < single);
            measured.push(format!("{panel}: FAB {own:.1e}, Push-Pull {single:.1e}"));
        }
    }
    Verdict {
        claim: "(A control the paper lacks.) FAB ends lower than Push-Pull on the same problem written with one level".into(),
        measured: measured.join("; "),
        finding: finding(&holds, "the panel"),
    }
}

fn slower_start(series: &[SeriesOutcome]) -> Verdict {
    let mut holds = Vec::new();
    let mut measured = Vec::new();
    for panel in panels(series) {
        let Some(own) = find(series, panel, fab()) else { continue };
        let rivals = series.iter().filter(|one| one.series.panel == panel && is_double_loop(one));
        let early = 10.0;
        let Some((label, rival)) = rivals
            .map(|one| (one.series.label.as_str(), one.error_at(Axis::Iterations, early)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
        else {
            continue;
        };
        let own = own.error_at(Axis::Iterations, early);
        holds.push(own > rival);
        measured.push(format!("{panel}, iteration {early:.0}: FAB {own:.2}, {label} {rival:.2}"));
    }
    Verdict {
        claim: "FAB starts slower than double loops, counted in iterations".into(),
        measured: measured.join("; "),
        finding: finding(&holds, "the panel"),
    }
}

fn saga_like_sgd(series: &[SeriesOutcome]) -> Verdict {
    let (saga, sgd) = (MethodKind::DlPushSaga.label(), MethodKind::DlPushSgd.label());
    let mut holds = Vec::new();
    let mut measured = Vec::new();
    for panel in panels(series) {
        if let (Some(saga), Some(sgd)) = (find(series, panel, saga), find(series, panel, sgd)) {
            let (saga, sgd) = (saga.settled_error().mean, sgd.settled_error().mean);
            holds.push((0.8..1.25).contains(&(saga / sgd)));
            measured.push(format!("{panel}: {saga:.1e}, {sgd:.1e}"));
        }
    }
    Verdict {
        claim: "DL-Push-SAGA and DL-Push-SGD are nearly identical, as batches are full".into(),
        measured: format!("settled errors {}", measured.join("; ")),
        finding: finding(&holds, "the panel"),
    }
}

/// Pairs of panels that differ in ν alone.
fn faster_with_more_links(series: &[SeriesOutcome]) -> Option<Verdict> {
    let mut holds = Vec::new();
    let mut measured = Vec::new();
    let own: Vec<&SeriesOutcome> = series.iter().filter(|one| one.series.label == fab()).collect();
    for (at, sparse) in own.iter().enumerate() {
        for dense in own.iter().skip(at + 1) {
            let settings = [&sparse.series.setting, &dense.series.setting];
            if settings[0].reward_noise != settings[1].reward_noise
                || settings[0].edge_probability >= settings[1].edge_probability
            {
                continue;
            }
            // Only what every run reached can be compared; noise keeps most above one per cent.
            let reached = |outcome: &SeriesOutcome| {
                let is_whole = outcome.converged() == outcome.runs.len();
                outcome.to_one_percent(Axis::Rounds).filter(|_| is_whole).map(|rounds| rounds.mean)
            };
            let (Some(slow), Some(fast)) = (reached(sparse), reached(dense)) else { continue };
            holds.push(fast < 0.95 * slow);
            measured.push(format!(
                "ω={}, ν={}: {slow:.0} rounds to 1 %, ν={}: {fast:.0}",
                settings[0].reward_noise, settings[0].edge_probability, settings[1].edge_probability
            ));
        }
    }
    (!holds.is_empty()).then(|| Verdict {
        claim: "FAB converges in fewer rounds where ν is larger".into(),
        measured: measured.join("; "),
        finding: finding(&holds, "ω"),
    })
}
