//! The rules of claims on large models.

use serde::Deserialize;

use super::{TrainingRunOutcome, TrainingSeries};
use crate::spread::Spread;
use crate::verdict::{Case, Comparison, find, is_meant, is_panel, panels};

/// When a claim holds. Labels may end in `*`; without panels, all are meant.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TrainingRule {
    /// In each panel it is more accurate than every other series `than`: the closest one decides.
    MoreAccurate {
        of: String,
        than: Vec<String>,
        #[serde(default)]
        panels: Vec<String>,
    },
    /// Its lead over the most accurate of `than` grows from each panel to the next.
    LeadGrows {
        of: String,
        than: Vec<String>,
        #[serde(default)]
        panels: Vec<String>,
    },
    /// From the first panel to the last it loses less accuracy than every other series `than`.
    LosesLess { of: String, than: Vec<String> },
    /// The mean accuracies of a series in all panels are within a range.
    Unchanged { series: Vec<String>, within: f64 },
    /// In each panel it reaches an accuracy that both reach sooner than, or after, each series `than`.
    Sooner { of: Vec<String>, than: Vec<String>, panels: Vec<String> },
    /// Its regularisation ends, on average, between two values.
    EndsBetween { of: String, least: f64, most: f64 },
}

/// The final accuracy on each seed.
fn accuracies(one: &TrainingSeries) -> impl Iterator<Item = f64> {
    one.runs.iter().map(|run| run.last().accuracy)
}

impl TrainingRule {
    /// Verdicts on the claim, case by case.
    pub(super) fn cases(&self, margin: f64, all: &[TrainingSeries]) -> Vec<Case> {
        let here = |panel: &str, labels: &[String]| {
            let meant =
                all.iter().filter(|one| one.series.panel == panel && is_meant(labels, &one.series.label));
            meant.collect::<Vec<_>>()
        };
        match self {
            Self::MoreAccurate { of, than, panels: named } => {
                let case = |panel: &str| {
                    let own = find(all, panel, of)?;
                    let others = here(panel, than).into_iter().filter(|one| one.series.label != *of);
                    let compared = others.map(|other| {
                        let advantages =
                            accuracies(own).zip(accuracies(other)).map(|(own, other)| own - other);
                        (Comparison::of(&advantages.collect::<Vec<_>>(), margin), other)
                    });
                    let (comparison, other) = compared.min_by(|a, b| a.0.order(&b.0))?;
                    let (ours, theirs) = (own.accuracy().mean, other.accuracy().mean);
                    let measured = format!("{panel}: {ours:.3}, {} {theirs:.3}", other.series.label);
                    Some(Case { outcome: comparison.outcome, measured })
                };
                panels(all).into_iter().filter(|panel| is_panel(named, panel)).filter_map(case).collect()
            }
            Self::LeadGrows { of, than, panels: named } => {
                let lead = |panel: &str| -> Option<Vec<f64>> {
                    let own = find(all, panel, of)?;
                    let best = here(panel, than).into_iter().filter(|one| one.series.label != *of);
                    let best = best.max_by(|a, b| a.accuracy().mean.total_cmp(&b.accuracy().mean))?;
                    Some(accuracies(own).zip(accuracies(best)).map(|(own, best)| own - best).collect())
                };
                let chain: Vec<&str> = match named.is_empty() {
                    true => panels(all),
                    false => named.iter().map(String::as_str).collect(),
                };
                let case = |pair: &[&str]| {
                    let (first, second) = (lead(pair[0])?, lead(pair[1])?);
                    let growth: Vec<f64> = first.iter().zip(&second).map(|(a, b)| b - a).collect();
                    let [a, b] = [&first, &second].map(|lead| Spread::of(lead.iter().copied()).mean);
                    let measured = format!("{}: {a:+.3}, {}: {b:+.3}", pair[0], pair[1]);
                    Some(Case { outcome: Comparison::of(&growth, margin).outcome, measured })
                };
                chain.windows(2).filter_map(case).collect()
            }
            Self::LosesLess { of, than } => {
                let all_panels = panels(all);
                let ends = || Some((*all_panels.first()?, *all_panels.last()?));
                let fall = |label: &str| -> Option<Vec<f64>> {
                    let (first, last) = ends()?;
                    let [first, last] = [find(all, first, label)?, find(all, last, label)?];
                    Some(accuracies(first).zip(accuracies(last)).map(|(a, b)| a - b).collect())
                };
                let case = |other: &TrainingSeries| {
                    let label = &other.series.label;
                    let (own, theirs) = (fall(of)?, fall(label).filter(|_| label != of)?);
                    let advantages: Vec<f64> =
                        own.iter().zip(&theirs).map(|(own, other)| other - own).collect();
                    let [a, b] = [&own, &theirs].map(|fall| Spread::of(fall.iter().copied()).mean);
                    let measured = format!("{of} {a:.3}, {label} {b:.3}");
                    Some(Case { outcome: Comparison::of(&advantages, margin).outcome, measured })
                };
                let first = ends().map(|(first, _)| here(first, than)).unwrap_or_default();
                first.into_iter().filter_map(case).collect()
            }
            Self::Unchanged { series, within } => {
                let first = panels(all).first().map(|panel| here(panel, series)).unwrap_or_default();
                let case = |one: &TrainingSeries| {
                    let label = &one.series.label;
                    let found = panels(all).into_iter().filter_map(|panel| find(all, panel, label));
                    let means: Vec<f64> = found.map(|one| one.accuracy().mean).collect();
                    let most = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
                    let texts: Vec<String> = means.iter().map(|mean| format!("{mean:.3}")).collect();
                    let measured = format!("{label} {}", texts.join(", "));
                    Case { outcome: (most - least < *within).into(), measured }
                };
                first.into_iter().map(case).collect()
            }
            Self::Sooner { of, than, panels: named } => {
                let named = panels(all).into_iter().filter(|panel| is_panel(named, panel));
                let pairs = named.flat_map(|panel| {
                    let (own, others) = (here(panel, of), here(panel, than));
                    let pairs = own
                        .into_iter()
                        .flat_map(move |own| others.clone().into_iter().map(move |one| (own, one)));
                    pairs.collect::<Vec<_>>()
                });
                let pairs = pairs.filter(|(own, other)| own.series.label != other.series.label);
                pairs.map(|(own, other)| sooner(own, other)).collect()
            }
            Self::EndsBetween { of, least, most } => {
                let case = |panel: &str| {
                    let end = find(all, panel, of)?.mean(|run| run.last().regularisation)?;
                    Some(Case {
                        outcome: (*least..*most).contains(&end).into(),
                        measured: format!("{panel}: {end:.4}"),
                    })
                };
                panels(all).into_iter().filter_map(case).collect()
            }
        }
    }

    /// The labels that it names.
    #[cfg(test)]
    fn labels(&self) -> Vec<&String> {
        match self {
            Self::MoreAccurate { of, than, .. }
            | Self::LeadGrows { of, than, .. }
            | Self::LosesLess { of, than } => than.iter().chain([of]).collect(),
            Self::Sooner { of, than, .. } => of.iter().chain(than).collect(),
            Self::Unchanged { series, .. } => series.iter().collect(),
            Self::EndsBetween { of, .. } => vec![of],
        }
    }

    /// The panels that it names.
    #[cfg(test)]
    fn named_panels(&self) -> &[String] {
        match self {
            Self::MoreAccurate { panels, .. }
            | Self::LeadGrows { panels, .. }
            | Self::Sooner { panels, .. } => panels,
            _ => &[],
        }
    }
}

/// Which of two reaches the lower of their final accuracies first; a tenth of the time counts.
fn sooner(own: &TrainingSeries, other: &TrainingSeries) -> Case {
    let level = own.accuracy().mean.min(other.accuracy().mean);
    let seconds = |run: &TrainingRunOutcome| {
        let reached = run.points.iter().find(|point| point.accuracy >= level);
        reached.map_or(f64::INFINITY, |point| point.seconds)
    };
    let pairs: Vec<[f64; 2]> =
        own.runs.iter().zip(&other.runs).map(|(a, b)| [seconds(a), seconds(b)]).collect();
    let far = |seconds: f64| seconds.max(1e-9).ln().min(700.0);
    let advantages: Vec<f64> = pairs.iter().map(|[own, other]| far(*other) - far(*own)).collect();
    let mean = |at: usize| Spread::of(pairs.iter().map(|pair| pair[at])).mean;
    let measured = format!(
        "{}, to {level:.3}: {} {:.0} s, {} {:.0} s",
        own.series.panel,
        own.series.label,
        mean(0),
        other.series.label,
        mean(1)
    );
    Case { outcome: Comparison::of(&advantages, 0.1).outcome, measured }
}

#[cfg(test)]
mod tests;
