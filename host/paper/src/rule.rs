//! The rules of claims: how series are compared, whatever is measured on them.

use serde::Deserialize;

use crate::case::{Case, CaseOutcome, Comparison};
use crate::spread::Spread;
use crate::workload::{Condition, Measure, SeriesOutcome, Workload, distinct};

/// When a claim holds. Labels may end in `*`; without panels, all are meant.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, bound = "")]
pub(crate) enum ClaimRule<W: Workload> {
    /// In each panel every series `of` is better than every other one of `than`, by a factor: the closest pair decides.
    Better {
        measure: W::Measure,
        of: Vec<String>,
        than: Vec<String>,
        #[serde(default = "one")]
        by: f64,
        #[serde(default)]
        panels: Vec<String>,
    },
    /// In each panel two series differ by no more than a factor.
    Alike { measure: W::Measure, series: [String; 2], within: f64 },
    /// In each panel each series is better than the next; with panels, one series in each of them than in the next.
    Worsens {
        measure: W::Measure,
        series: Vec<String>,
        #[serde(default)]
        panels: Vec<String>,
    },
    /// The lead over the best of `than` grows from each panel to the next.
    LeadGrows {
        measure: W::Measure,
        of: String,
        than: Vec<String>,
        #[serde(default)]
        panels: Vec<String>,
    },
    /// The means of each series in all panels are within a range.
    Unchanged { measure: W::Measure, series: Vec<String>, within: f64 },
    /// Each series meets a condition by itself.
    Each {
        series: Vec<String>,
        #[serde(default)]
        panels: Vec<String>,
        is: W::Condition,
    },
}

const fn one() -> f64 {
    1.0
}

type Outcomes<'a, W> = &'a [SeriesOutcome<W>];

impl<W: Workload> ClaimRule<W> {
    /// Verdicts on the claim, case by case. Differences below `margin` are ties.
    pub(crate) fn cases(&self, margin: f64, all: Outcomes<'_, W>) -> Vec<Case> {
        let each_panel =
            |case: &dyn Fn(&str) -> Option<Case>| panels(all).into_iter().filter_map(case).collect();
        match self {
            Self::Better { measure, of, than, by, panels } => each_panel(&|panel| {
                closest(*measure, all, panel, [of, than], *by, margin).filter(|_| is_panel(panels, panel))
            }),
            Self::Alike { measure, series: [first, second], within } => each_panel(&|panel| {
                let [first, second] = [find(all, panel, first)?, find(all, panel, second)?];
                if !W::has_moved(first) && !W::has_moved(second) {
                    return None;
                }
                let (below, texts) = compare(*measure, first, second, 1.0 / within, 0.0);
                let (above, _) = compare(*measure, second, first, 1.0 / within, 0.0);
                let outcome = below.outcome.min(above.outcome);
                Some(Case { outcome, measured: format!("{panel}: {}, {}", texts[0], texts[1]) })
            }),
            Self::Worsens { measure, series, panels: named } => {
                let chain = |panel: &str| series.iter().filter_map(|label| find(all, panel, label)).collect();
                let chains: Vec<Vec<&SeriesOutcome<W>>> = match named.is_empty() {
                    true => panels(all).into_iter().map(chain).collect(),
                    false => vec![named.iter().flat_map(|panel| chain(panel)).collect()],
                };
                let case = |pair: &[&SeriesOutcome<W>]| {
                    let (comparison, texts) = compare(*measure, pair[0], pair[1], 1.0, margin);
                    let measured =
                        format!("{}: {}, {}: {}", pair[0].name(), texts[0], pair[1].name(), texts[1]);
                    Case { outcome: comparison.outcome, measured }
                };
                chains.iter().flat_map(|chain| chain.windows(2).map(case)).collect()
            }
            Self::LeadGrows { measure, of, than, panels: named } => {
                let lead = |panel: &str| {
                    let rivals = here(all, panel, than).filter(|one| one.series.label != *of);
                    let best = rivals.reduce(|best, one| {
                        let is_better = compare(*measure, one, best, 1.0, 0.0).0.advantage > 0.0;
                        if is_better { one } else { best }
                    });
                    Some(advantages(*measure, find(all, panel, of)?, best?))
                };
                let chain =
                    if named.is_empty() { panels(all) } else { named.iter().map(String::as_str).collect() };
                let case = |pair: &[&str]| {
                    let [first, second] = [lead(pair[0])?, lead(pair[1])?];
                    let grown: Vec<f64> =
                        first.iter().zip(&second).map(|(first, second)| second - first).collect();
                    let [a, b] = [first, second].map(|lead| Spread::of(lead.into_iter()).mean);
                    let measured = format!("{}: {a:+.3}, {}: {b:+.3}", pair[0], pair[1]);
                    Some(Case { outcome: Comparison::of(&grown, margin).outcome, measured })
                };
                chain.windows(2).filter_map(case).collect()
            }
            Self::Unchanged { measure, series, within } => {
                let mean = |one: &SeriesOutcome<W>| {
                    Spread::of(one.runs.iter().map(|run| measure.values([(one, run); 2])[0])).mean
                };
                let case = |first: &SeriesOutcome<W>| {
                    let label = &first.series.label;
                    let found = panels(all).into_iter().filter_map(|panel| find(all, panel, label));
                    let means: Vec<f64> = found.map(mean).collect();
                    let most = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
                    let texts: Vec<String> = means.iter().map(|mean| format!("{mean:.3}")).collect();
                    let measured = format!("{label} {}", texts.join(", "));
                    Case { outcome: (most - least < *within).into(), measured }
                };
                panels(all)
                    .first()
                    .map(|panel| here(all, panel, series).map(case).collect())
                    .unwrap_or_default()
            }
            Self::Each { series, panels, is } => {
                let meant = all
                    .iter()
                    .filter(|one| is_meant(series, &one.series.label) && is_panel(panels, &one.series.panel));
                meant.filter_map(|one| is.judge(one)).collect()
            }
        }
    }
}

fn advantages<W: Workload>(
    measure: W::Measure,
    own: &SeriesOutcome<W>,
    other: &SeriesOutcome<W>,
) -> Vec<f64> {
    let pairs = own.runs.iter().zip(&other.runs);
    let values = pairs.map(|(first, second)| measure.values([(own, first), (other, second)]));
    values.map(|[own, other]| measure.advantage(own, other)).collect()
}

/// Whether `own` is better than `other` by a factor, seed by seed, and their mean values in words.
fn compare<W: Workload>(
    measure: W::Measure,
    own: &SeriesOutcome<W>,
    other: &SeriesOutcome<W>,
    by: f64,
    margin: f64,
) -> (Comparison, [String; 2]) {
    let pairs = own.runs.iter().zip(&other.runs);
    let values: Vec<[f64; 2]> =
        pairs.map(|(first, second)| measure.values([(own, first), (other, second)])).collect();
    let advantages: Vec<f64> =
        values.iter().map(|[own, other]| measure.advantage(*own, *other) - by.ln()).collect();
    let mut comparison = Comparison::of(&advantages, measure.tie(margin));
    // Neither method reaches the level with any seed: the claim fails.
    if values.iter().flatten().all(|value| value.is_infinite()) {
        comparison.outcome = CaseOutcome::Fails;
    }
    let text = |one, at: usize| measure.text(one, Spread::of(values.iter().map(|pair| pair[at])).mean);
    (comparison, [text(own, 0), text(other, 1)])
}

/// The comparison of the closest pair of a panel.
fn closest<W: Workload>(
    measure: W::Measure,
    all: Outcomes<'_, W>,
    panel: &str,
    [of, than]: [&[String]; 2],
    by: f64,
    margin: f64,
) -> Option<Case> {
    // To be ahead of what has not moved says nothing, but for time.
    let rivals = || here(all, panel, than).filter(|one| measure.counts_at_rest() || W::has_moved(one));
    let pairs = here(all, panel, of).flat_map(|own| rivals().map(move |other| (own, other)));
    let pairs = pairs.filter(|(own, other)| own.series.label != other.series.label);
    let compared = pairs.map(|(own, other)| (compare(measure, own, other, by, margin), [own, other]));
    let ((comparison, texts), [own, other]) = compared.min_by(|a, b| a.0.0.order(&b.0.0))?;
    let (own, other) = (&own.series.label, &other.series.label);
    let panel = if panel.is_empty() { String::new() } else { format!("{panel}: ") };
    let measured = format!("{panel}{own} {}, {other} {}", texts[0], texts[1]);
    Some(Case { outcome: comparison.outcome, measured })
}

/// Whether a label is meant: by its name, or by how it begins where `pattern` ends in `*`.
fn is_meant(patterns: &[String], label: &str) -> bool {
    let matches = |pattern: &String| match pattern.strip_suffix('*') {
        Some(start) => label.starts_with(start),
        None => pattern == label,
    };
    patterns.iter().any(matches)
}

/// Whether a panel is meant, by its name; all are where none is named.
fn is_panel(panels: &[String], panel: &str) -> bool {
    panels.is_empty() || panels.iter().any(|one| one == panel)
}

/// The series of a panel whose labels are meant.
fn here<'a, W: Workload>(
    all: Outcomes<'a, W>,
    panel: &'a str,
    labels: &'a [String],
) -> impl Iterator<Item = &'a SeriesOutcome<W>> {
    all.iter().filter(move |one| one.series.panel == panel && is_meant(labels, &one.series.label))
}

fn find<'a, W: Workload>(all: Outcomes<'a, W>, panel: &str, label: &str) -> Option<&'a SeriesOutcome<W>> {
    all.iter().find(|one| one.series.panel == panel && one.series.label == label)
}

fn panels<W: Workload>(all: Outcomes<'_, W>) -> Vec<&str> {
    distinct(all.iter().map(|one| one.series.panel.as_str()))
}

#[cfg(test)]
mod tests;
