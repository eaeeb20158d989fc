//! Claims that the paper draws from its experiments, and whether we see them too.

mod factors;
mod integrations;
mod lost_frames;
mod policy_evaluation;
mod rates;
mod rings;
mod sensitivity;

use std::fmt;

use crate::experiment::{SeriesOutcome, Workload, distinct};
use crate::small::{Axis, MethodOutcome};

/// Whether a claim was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// In every case that was measured.
    Seen,
    /// In none.
    NotSeen,
    /// In some: on what it depends.
    DependsOn(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seen => formatter.write_str("seen"),
            Self::NotSeen => formatter.write_str("not seen"),
            Self::DependsOn(what) => write!(formatter, "depends on {what}"),
        }
    }
}

/// A claim and what became of it.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The claim, in our words.
    pub claim: String,
    /// What we measured.
    pub measured: String,
    /// Whether we see it.
    pub finding: Finding,
}

/// The verdicts on an experiment of this name.
#[must_use]
pub fn of(experiment: &str, series: &[MethodOutcome]) -> Vec<Verdict> {
    match experiment {
        "policy-evaluation" | "policy-evaluation-noise" => policy_evaluation::verdicts(series),
        "policy-evaluation-100" | "policy-evaluation-1000" => policy_evaluation::verdicts_at_scale(series),
        "integrations" => integrations::verdicts(series),
        "sensitivity" => sensitivity::verdicts(series),
        "agents" => vec![rings::slower_with_more_agents(series)],
        "weights" => vec![rings::slower_with_smaller_weights(series)],
        "rings" => rings::verdicts_in_turn(series),
        "rates" => rates::verdicts(series),
        "lost-frames" => lost_frames::verdicts(series),
        "factors" => factors::verdicts(series),
        _ => Vec::new(),
    }
}

/// [`Finding::Seen`] where all hold, [`Finding::NotSeen`] where none does, else it depends on `what`.
pub(crate) fn finding(holds: &[bool], what: &str) -> Finding {
    match holds.iter().filter(|holds| **holds).count() {
        0 => Finding::NotSeen,
        count if count == holds.len() => Finding::Seen,
        count => Finding::DependsOn(format!("{what}: {count} of {}", holds.len())),
    }
}

/// The verdict on a claim from cases: whether it holds in each, and what was measured there.
pub(crate) fn judged(
    claim: impl Into<String>,
    what: &str,
    cases: impl IntoIterator<Item = (bool, String)>,
) -> Verdict {
    let (holds, measured): (Vec<bool>, Vec<String>) = cases.into_iter().unzip();
    Verdict { claim: claim.into(), measured: measured.join("; "), finding: finding(&holds, what) }
}

/// The series of a panel by label.
pub(crate) fn find<'a, W: Workload>(
    series: &'a [SeriesOutcome<W>],
    panel: &str,
    label: &str,
) -> Option<&'a SeriesOutcome<W>> {
    series.iter().find(|one| one.series.panel == panel && one.series.label == label)
}

/// Rounds to one per cent in words: a mean, how many seeds got there, or what happened instead.
fn rounds_or_why(outcome: &MethodOutcome) -> String {
    let (converged, all) = (outcome.converged(), outcome.runs.len());
    match outcome.to_one_percent(Axis::Rounds) {
        Some(rounds) if converged == all => format!("{:.0}", rounds.mean),
        Some(rounds) => format!("{:.0} ({converged} of {all} seeds)", rounds.mean),
        None if has_diverged(outcome) => "diverges".to_owned(),
        None => format!("never (error {:.1e})", outcome.settled_error().mean),
    }
}

/// Whether most seeds ended farther away than they started.
fn has_diverged(outcome: &MethodOutcome) -> bool {
    let away = outcome.runs.iter().filter(|run| run.has_diverged || run.last().error > 2.0).count();
    2 * away > outcome.runs.len()
}

/// The panels, in order.
fn panels(series: &[MethodOutcome]) -> Vec<&str> {
    distinct(series.iter().map(|one| one.series.panel.as_str()))
}

#[cfg(test)]
mod tests;
