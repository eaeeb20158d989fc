//! The paper's section on policy evaluation, its main figure and those on ω and ν in the appendix.

use super::{Verdict, find, judged, panels};
use crate::method::MethodKind;
use crate::small::{Axis, MethodOutcome};

const EQUAL_FLOATS: &str = "at equal communication (floats over all links)";
const EQUAL_ITERATIONS: &str = "after as many iterations (T = 20 rounds each for double loops)";

pub(super) fn verdicts(series: &[MethodOutcome]) -> Vec<Verdict> {
    let mut verdicts = vec![
        against_double_loops(series, EQUAL_FLOATS, Axis::Floats),
        against_double_loops(series, EQUAL_ITERATIONS, Axis::Iterations),
        against_single_level(series),
        slower_start(series),
        saga_like_sgd(series),
    ];
    verdicts.extend(faster_with_more_links(series));
    verdicts
}

/// The claims of the larger swarms.
pub(super) fn verdicts_at_scale(series: &[MethodOutcome]) -> Vec<Verdict> {
    vec![
        against_double_loops(series, EQUAL_FLOATS, Axis::Floats),
        against_double_loops(series, EQUAL_ITERATIONS, Axis::Iterations),
        against_double_loops(series, "after as many seconds", Axis::Seconds),
        saga_like_sgd(series),
    ]
}

fn fab() -> &'static str {
    MethodKind::Fab.label()
}

/// A verdict with a case for each panel that has what it takes.
fn by_panel(
    series: &[MethodOutcome],
    claim: impl Into<String>,
    case: impl Fn(&str) -> Option<(bool, String)>,
) -> Verdict {
    judged(claim, "the panel", panels(series).into_iter().filter_map(case))
}

fn double_loops<'a>(series: &'a [MethodOutcome], panel: &str) -> impl Iterator<Item = &'a MethodOutcome> {
    series.iter().filter(move |one| one.series.panel == panel && one.series.label.starts_with("DL-"))
}

/// FAB's error and the best double loop's, where the poorer of the two has used up its budget.
fn against_double_loops(series: &[MethodOutcome], how: &str, axis: Axis) -> Verdict {
    by_panel(series, format!("FAB ends with a lower error than every double-loop baseline, {how}"), |panel| {
        let own = find(series, panel, fab())?;
        let end = |outcome: &MethodOutcome| {
            outcome.runs.iter().map(|run| run.last().on(axis)).fold(f64::INFINITY, f64::min)
        };
        let compared = double_loops(series, panel).map(|rival| {
            let amount = end(own).min(end(rival));
            (rival.series.label.as_str(), own.error_at(axis, amount), rival.error_at(axis, amount))
        });
        let (label, own, rival) = compared.min_by(|a, b| (a.2 / a.1).total_cmp(&(b.2 / b.1)))?;
        Some((own < rival, format!("{panel}: FAB {own:.1e}, {label} {rival:.1e}")))
    })
}

fn against_single_level(series: &[MethodOutcome]) -> Verdict {
    let claim = "(A control the paper lacks.) FAB ends lower than Push-Pull on the same problem written with one level";
    by_panel(series, claim, |panel| {
        let own = find(series, panel, fab())?.settled_error().mean;
        let single = find(series, panel, MethodKind::PushPull.label())?.settled_error().mean;
        Some((own < single, format!("{panel}: FAB {own:.1e}, Push-Pull {single:.1e}")))
    })
}

fn slower_start(series: &[MethodOutcome]) -> Verdict {
    let early = 10.0;
    by_panel(series, "FAB starts slower than double loops, counted in iterations", |panel| {
        let own = find(series, panel, fab())?.error_at(Axis::Iterations, early);
        let rivals = double_loops(series, panel)
            .map(|one| (one.series.label.as_str(), one.error_at(Axis::Iterations, early)));
        let (label, rival) = rivals.min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((own > rival, format!("{panel}, iteration {early:.0}: FAB {own:.2}, {label} {rival:.2}")))
    })
}

fn saga_like_sgd(series: &[MethodOutcome]) -> Verdict {
    let claim = "DL-Push-SAGA and DL-Push-SGD are nearly identical, as batches are full";
    let verdict = by_panel(series, claim, |panel| {
        let saga = find(series, panel, MethodKind::DlPushSaga.label())?.settled_error().mean;
        let sgd = find(series, panel, MethodKind::DlPushSgd.label())?.settled_error().mean;
        Some(((0.8..1.25).contains(&(saga / sgd)), format!("{panel}: {saga:.1e}, {sgd:.1e}")))
    });
    Verdict { measured: format!("settled errors {}", verdict.measured), ..verdict }
}

/// Pairs of panels that differ in ν alone.
fn faster_with_more_links(series: &[MethodOutcome]) -> Option<Verdict> {
    let own: Vec<&MethodOutcome> = series.iter().filter(|one| one.series.label == fab()).collect();
    // Only what every run reached can be compared; noise keeps most above one per cent.
    let reached = |outcome: &MethodOutcome| {
        let is_whole = outcome.converged() == outcome.runs.len();
        outcome.to_one_percent(Axis::Rounds).filter(|_| is_whole).map(|rounds| rounds.mean)
    };
    let pairs =
        own.iter().enumerate().flat_map(|(at, one)| own[at + 1..].iter().map(move |other| (one, other)));
    let cases = pairs.filter_map(|(sparse, dense)| {
        let [few, many] = [&sparse.series.work.setting, &dense.series.work.setting];
        if few.reward_noise != many.reward_noise || few.edge_probability >= many.edge_probability {
            return None;
        }
        let (slow, fast) = (reached(sparse)?, reached(dense)?);
        let measured = format!(
            "ω={}, ν={}: {slow:.0} rounds to 1 %, ν={}: {fast:.0}",
            few.reward_noise, few.edge_probability, many.edge_probability
        );
        Some((fast < 0.95 * slow, measured))
    });
    let cases: Vec<(bool, String)> = cases.collect();
    (!cases.is_empty()).then(|| judged("FAB converges in fewer rounds where ν is larger", "ω", cases))
}
