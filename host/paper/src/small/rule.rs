//! The rules of claims on small problems.

use serde::Deserialize;

use super::{Axis, MethodOutcome, RunOutcome};
use crate::spread::Spread;
use crate::verdict::{Case, CaseOutcome, Comparison, find, is_meant, is_panel, panels};

/// A logarithm that infinitely many rounds count as.
const FAR: f64 = 700.0;

/// When a claim holds. Labels may end in `*`; without panels, all are meant.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MethodRule {
    /// In each panel every series `of` is lower than every other one of `than`, by a factor: the closest pair decides.
    Less {
        measure: Measure,
        of: Vec<String>,
        than: Vec<String>,
        #[serde(default = "one")]
        by: f64,
        #[serde(default)]
        panels: Vec<String>,
    },
    /// In each panel two series differ by no more than a factor.
    Alike { measure: Measure, series: [String; 2], within: f64 },
    /// In each panel the measure grows from each series to the next; with panels, that of one series from each to the next.
    Grows {
        measure: Measure,
        series: Vec<String>,
        #[serde(default)]
        panels: Vec<String>,
    },
    /// Every seed comes below one per cent.
    Reaches {
        series: Vec<String>,
        #[serde(default)]
        panels: Vec<String>,
    },
    /// Every seed settles above one per cent; it may pass below on its way.
    Misses {
        series: Vec<String>,
        #[serde(default)]
        panels: Vec<String>,
    },
    /// Most seeds end farther away than they started.
    Diverges { series: Vec<String> },
    /// At a round, mean error and consensus error are below limits.
    Below { series: Vec<String>, round: f64, error: f64, consensus: f64 },
    /// The mean error ends no higher than a factor above its least.
    Stays { within: f64 },
    /// Mean rounds to one per cent are within a share of those in a column, and the same rows diverge.
    Printed { column: PrintedColumn, within: f64 },
}

const fn one() -> f64 {
    1.0
}

/// A number per run; the lower, the better.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Where the error settles.
    SettledError,
    /// The error where the first of two runs ends on an axis.
    ErrorAtEnd(Axis),
    /// The error at a place on an axis.
    ErrorAt(Axis, f64),
    /// The cost of coming below one per cent.
    OnePercent(Axis),
    /// The seconds to within a tenth of where the worse of two series settles.
    SecondsToWorse,
    /// One over the step on x.
    InverseStep,
}

/// A column of the experiment's file.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrintedColumn {
    /// The paper's.
    Paper,
    /// An independent implementation's.
    Reference,
}

/// A series and one of its runs.
type SeriesRun<'a> = (&'a MethodOutcome, &'a RunOutcome);

impl Measure {
    /// The values of a run of each of two series.
    fn of_pair(self, pair: [SeriesRun<'_>; 2]) -> [f64; 2] {
        let [first, second] = pair.map(|(_, run)| run);
        match self {
            Self::SettledError => [first, second].map(RunOutcome::settled_error),
            Self::ErrorAtEnd(axis) => {
                let amount = first.last().on(axis).min(second.last().on(axis));
                [first, second].map(|run| run.error_at(axis, amount))
            }
            Self::ErrorAt(axis, amount) => [first, second].map(|run| run.error_at(axis, amount)),
            Self::OnePercent(axis) => {
                [first, second].map(|run| run.one_percent.map_or(f64::INFINITY, |point| point.on(axis)))
            }
            Self::SecondsToWorse => {
                let goal = pair.map(|(one, _)| one.settled_error().mean).into_iter().fold(0.0, f64::max);
                let reached =
                    |run: &RunOutcome| run.points.iter().find(|point| point.error < 1.1 * goal).copied();
                [first, second].map(|run| reached(run).map_or(f64::INFINITY, |point| point.on(Axis::Seconds)))
            }
            Self::InverseStep => pair.map(|(one, _)| 1.0 / one.choice.upper),
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            _ if value.is_infinite() => "never".to_owned(),
            Self::OnePercent(_) => format!("{value:.2e}"),
            Self::SecondsToWorse => format!("{value:.3} s"),
            Self::InverseStep => format!("step {:.1e}", 1.0 / value),
            Self::SettledError | Self::ErrorAtEnd(_) | Self::ErrorAt(..) => format!("{value:.1e}"),
        }
    }

    /// Whether `ours` is lower than `theirs` by a factor, seed by seed, and their mean values in words.
    fn compare(
        self,
        ours: &MethodOutcome,
        theirs: &MethodOutcome,
        by: f64,
        margin: f64,
    ) -> (Comparison, [String; 2]) {
        let pairs = ours.runs.iter().zip(&theirs.runs);
        let values: Vec<[f64; 2]> =
            pairs.map(|(first, second)| self.of_pair([(ours, first), (theirs, second)])).collect();
        let far = |value: f64| value.ln().clamp(-FAR, FAR);
        let advantages: Vec<f64> =
            values.iter().map(|[own, other]| far(*other) - far(*own) - by.ln()).collect();
        let mut comparison = Comparison::of(&advantages, margin.ln_1p());
        // Neither method reaches the level with any seed: the claim fails.
        if values.iter().flatten().all(|value| value.is_infinite()) {
            comparison.outcome = CaseOutcome::Fails;
        }
        let mean = |at: usize| self.text(Spread::of(values.iter().map(|pair| pair[at])).mean);
        let texts = match self {
            Self::OnePercent(Axis::Rounds) => [rounds_or_why(ours), rounds_or_why(theirs)],
            _ => [mean(0), mean(1)],
        };
        (comparison, texts)
    }
}

impl MethodRule {
    /// Verdicts on the claim, case by case.
    pub(super) fn cases(&self, margin: f64, all: &[MethodOutcome]) -> Vec<Case> {
        let each = |labels: &[String], of: &[String], case: &dyn Fn(&MethodOutcome) -> bool| {
            let meant = all
                .iter()
                .filter(|one| is_meant(labels, &one.series.label) && is_panel(of, &one.series.panel));
            let case = |one: &MethodOutcome| Case {
                outcome: case(one).into(),
                measured: format!("{}: {}", name(one), rounds_or_why(one)),
            };
            meant.map(case).collect()
        };
        match self {
            Self::Less { measure, of, than, by, panels: named } => {
                let panels = panels(all).into_iter().filter(|panel| is_panel(named, panel));
                panels.filter_map(|panel| closest(*measure, all, panel, [of, than], *by, margin)).collect()
            }
            Self::Alike { measure, series, within } => {
                let case = |panel: &str| {
                    let [first, second] = [find(all, panel, &series[0])?, find(all, panel, &series[1])?];
                    if !has_moved(first) && !has_moved(second) {
                        return None;
                    }
                    let (below, texts) = measure.compare(first, second, 1.0 / within, 0.0);
                    let (above, _) = measure.compare(second, first, 1.0 / within, 0.0);
                    let outcome = below.outcome.min(above.outcome);
                    Some(Case { outcome, measured: format!("{panel}: {}, {}", texts[0], texts[1]) })
                };
                panels(all).into_iter().filter_map(case).collect()
            }
            Self::Grows { measure, series, panels: named } => {
                let chain = |panel: &str| series.iter().filter_map(|label| find(all, panel, label)).collect();
                let chains: Vec<Vec<&MethodOutcome>> = match named.is_empty() {
                    true => panels(all).into_iter().map(chain).collect(),
                    false => vec![named.iter().flat_map(|panel| chain(panel)).collect()],
                };
                let case = |pair: &[&MethodOutcome]| {
                    let (comparison, texts) = measure.compare(pair[0], pair[1], 1.0, margin);
                    let [first, second] = [name(pair[0]), name(pair[1])];
                    let measured = format!("{first}: {}, {second}: {}", texts[0], texts[1]);
                    Case { outcome: comparison.outcome, measured }
                };
                chains.iter().flat_map(|chain| chain.windows(2).map(case).collect::<Vec<_>>()).collect()
            }
            Self::Reaches { series, panels } => {
                each(series, panels, &|one| one.converged() == one.runs.len())
            }
            Self::Misses { series, panels } => {
                each(series, panels, &|one| one.runs.iter().all(|run| run.settled_error() > 0.01))
            }
            Self::Diverges { series } => each(series, &[], &has_diverged),
            Self::Below { series, round, error, consensus } => {
                let meant = all.iter().filter(|one| is_meant(series, &one.series.label));
                let case = |one: &MethodOutcome| {
                    let curve = one.curve();
                    let at = curve.iter().rfind(|point| point.on(Axis::Rounds) <= *round)?;
                    let (at_error, apart) = (at.error.mean, at.consensus.mean);
                    let measured = format!("{}: error {at_error:.1e}, consensus {apart:.1e}", name(one));
                    Some(Case { outcome: (at_error < *error && apart < *consensus).into(), measured })
                };
                meant.filter_map(case).collect()
            }
            Self::Stays { within } => {
                let case = |one: &MethodOutcome| {
                    let curve = one.curve();
                    let least = curve.iter().map(|point| point.error.mean).fold(f64::INFINITY, f64::min);
                    let end = curve.last()?.error.mean;
                    let measured = format!("{}: least error {least:.1e}, at the end {end:.1e}", name(one));
                    Some(Case { outcome: (end < within * least).into(), measured })
                };
                all.iter().filter_map(case).collect()
            }
            Self::Printed { column, within } => {
                all.iter().map(|one| printed(*column, *within, one)).collect()
            }
        }
    }

    /// The labels that it names.
    #[cfg(test)]
    fn labels(&self) -> Vec<&String> {
        match self {
            Self::Less { of, than, .. } => of.iter().chain(than).collect(),
            Self::Alike { series, .. } => series.iter().collect(),
            Self::Grows { series, .. }
            | Self::Reaches { series, .. }
            | Self::Misses { series, .. }
            | Self::Diverges { series }
            | Self::Below { series, .. } => series.iter().collect(),
            Self::Stays { .. } | Self::Printed { .. } => Vec::new(),
        }
    }

    /// The panels that it names.
    #[cfg(test)]
    fn named_panels(&self) -> &[String] {
        match self {
            Self::Less { panels, .. }
            | Self::Grows { panels, .. }
            | Self::Reaches { panels, .. }
            | Self::Misses { panels, .. } => panels,
            _ => &[],
        }
    }
}

/// The comparison of the closest pair of a panel.
fn closest(
    measure: Measure,
    all: &[MethodOutcome],
    panel: &str,
    [of, than]: [&[String]; 2],
    by: f64,
    margin: f64,
) -> Option<Case> {
    let here = |labels| {
        all.iter().filter(move |one| one.series.panel == panel && is_meant(labels, &one.series.label))
    };
    // To be ahead of what has not moved says nothing, but for time.
    let counts = |one: &&MethodOutcome| matches!(measure, Measure::OnePercent(_)) || has_moved(one);
    let pairs = here(of).flat_map(|own| here(than).filter(counts).map(move |other| (own, other)));
    let pairs = pairs.filter(|(own, other)| own.series.label != other.series.label);
    let compared = pairs.map(|(own, other)| (measure.compare(own, other, by, margin), [own, other]));
    let ((comparison, texts), [own, other]) = compared.min_by(|a, b| a.0.0.order(&b.0.0))?;
    let (own, other) = (&own.series.label, &other.series.label);
    let panel = if panel.is_empty() { String::new() } else { format!("{panel}: ") };
    let measured = format!("{panel}{own} {}, {other} {}", texts[0], texts[1]);
    Some(Case { outcome: comparison.outcome, measured })
}

fn printed(column: PrintedColumn, within: f64, one: &MethodOutcome) -> Case {
    let work = &one.series.work;
    let diverges = work.paper.as_deref() == Some("diverges");
    let number = match column {
        PrintedColumn::Paper => work.paper.as_ref().and_then(|paper| paper.parse().ok()),
        PrintedColumn::Reference => work.reference,
    };
    let holds = match (number, one.to_one_percent(Axis::Rounds)) {
        (Some(number), Some(rounds)) => (rounds.mean / number - 1.0).abs() <= within,
        (None, None) => has_diverged(one) == diverges,
        _ => false,
    };
    let expected = number.map_or(work.paper.clone().unwrap_or_default(), |number: f64| number.to_string());
    Case { outcome: holds.into(), measured: format!("{}: {} ({expected})", name(one), rounds_or_why(one)) }
}

/// The label, and the panel where there are some.
fn name(one: &MethodOutcome) -> String {
    let (panel, label) = (&one.series.panel, &one.series.label);
    if panel.is_empty() { label.clone() } else { format!("{panel}, {label}") }
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

/// Whether it has left the error 1 of its start.
fn has_moved(outcome: &MethodOutcome) -> bool {
    !(0.9..1.1).contains(&outcome.settled_error().mean)
}

#[cfg(test)]
mod tests;
