//! Measures of runs on small problems, and conditions on them.

use serde::Deserialize;

use super::outcome::ONE_PERCENT;
use super::{Axis, MethodOutcome, MethodWorkload, Point, RunOutcome};
use crate::case::{Case, Comparison};
use crate::spread::Spread;
use crate::workload::{Condition, Measure};

/// A logarithm that infinitely many rounds count as.
const FAR: f64 = 700.0;

/// A number per run; the lower, the better.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ErrorMeasure {
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
    /// Numbers that an agent keeps.
    Memory,
}

/// A condition on a single series.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum ErrorCondition {
    /// Every seed comes below one per cent.
    Reaches,
    /// Every seed settles above one per cent; it may pass below on its way.
    Misses,
    /// Most seeds end farther away than they started.
    Diverges,
    /// At a round, mean error and consensus error are below limits.
    Below { round: f64, error: f64, consensus: f64 },
    /// The mean error ends no higher than this factor above its least.
    Stays(f64),
    /// Mean rounds to one per cent are within a share of those in a column, and the same rows diverge.
    Printed { column: PrintedColumn, within: f64 },
    /// The least value until round K falls at least like K to the minus `rate`, from one round to another.
    Falls { quantity: Quantity, from: f64, to: f64, rate: f64, within: f64 },
}

/// A column of the experiment's file.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PrintedColumn {
    /// The paper's.
    Paper,
    /// An independent implementation's.
    Reference,
}

/// A squared distance that theorems bound.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Quantity {
    Stationarity,
    /// The mean squared distance from the mean of all agents.
    Consensus,
}

impl Measure<MethodWorkload> for ErrorMeasure {
    fn values(self, pair: [(&MethodOutcome, &RunOutcome); 2]) -> [f64; 2] {
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
            Self::Memory => [first, second].map(|run| run.memory as f64),
        }
    }

    fn advantage(self, own: f64, other: f64) -> f64 {
        let far = |value: f64| value.ln().clamp(-FAR, FAR);
        far(other) - far(own)
    }

    fn tie(self, margin: f64) -> f64 {
        margin.ln_1p()
    }

    fn counts_at_rest(self) -> bool {
        matches!(self, Self::OnePercent(_) | Self::Memory)
    }

    fn text(self, one: &MethodOutcome, mean: f64) -> String {
        match self {
            Self::OnePercent(Axis::Rounds) => one.rounds_or_why(),
            _ if mean.is_infinite() => "never".to_owned(),
            Self::OnePercent(_) => format!("{mean:.2e}"),
            Self::SecondsToWorse => format!("{mean:.3} s"),
            Self::InverseStep => format!("step {:.1e}", 1.0 / mean),
            Self::Memory => format!("{mean:.0} numbers"),
            Self::SettledError | Self::ErrorAtEnd(_) | Self::ErrorAt(..) => format!("{mean:.1e}"),
        }
    }
}

impl Condition<MethodWorkload> for ErrorCondition {
    fn judge(&self, one: &MethodOutcome) -> Option<Case> {
        let name = one.name();
        let rounds = |holds: bool| Case {
            outcome: holds.into(),
            measured: format!("{name}: {}", one.rounds_or_why()),
        };
        let mean = |points: &[Point], value: fn(&Point) -> f64| Spread::of(points.iter().map(value)).mean;
        let error = |point: &Point| point.error;
        Some(match self {
            Self::Reaches => rounds(one.converged() == one.runs.len()),
            Self::Misses => rounds(one.runs.iter().all(|run| run.settled_error() > ONE_PERCENT)),
            Self::Diverges => rounds(one.most_went_away()),
            Self::Below { round, error: limit, consensus } => {
                let samples = one.samples();
                let at =
                    samples.iter().rfind(|points| mean(points, |point| point.rounds.into()) <= *round)?;
                let (error, apart) = (mean(at, error), mean(at, |point| point.consensus));
                let measured = format!("{name}: error {error:.1e}, consensus {apart:.1e}");
                Case { outcome: (error < *limit && apart < *consensus).into(), measured }
            }
            Self::Stays(within) => {
                let errors: Vec<f64> = one.samples().iter().map(|points| mean(points, error)).collect();
                let (least, end) = (errors.iter().copied().fold(f64::INFINITY, f64::min), *errors.last()?);
                let measured = format!("{name}: least error {least:.1e}, at the end {end:.1e}");
                Case { outcome: (end < within * least).into(), measured }
            }
            Self::Printed { column, within } => {
                let work = &one.series.work;
                let number = match column {
                    PrintedColumn::Paper => work.paper.as_ref().and_then(|paper| paper.parse().ok()),
                    PrintedColumn::Reference => work.reference,
                };
                let holds = match (number, one.to_one_percent(Axis::Rounds)) {
                    (Some(number), Some(rounds)) => (rounds.mean / number - 1.0).abs() <= *within,
                    (None, None) => one.most_went_away() == (work.paper.as_deref() == Some("diverges")),
                    _ => false,
                };
                let expected =
                    number.map_or(work.paper.clone().unwrap_or_default(), |number: f64| number.to_string());
                let measured = format!("{name}: {} ({expected})", one.rounds_or_why());
                Case { outcome: holds.into(), measured }
            }
            Self::Falls { quantity, from, to, rate, within } => {
                let value = |point: &Point| match quantity {
                    Quantity::Stationarity => point.stationarity.unwrap_or(f64::NAN),
                    Quantity::Consensus => point.consensus.powi(2),
                };
                let slope = |run: &RunOutcome| {
                    let [early, late] = [from, to].map(|rounds| run.least(*rounds, value).max(1e-300).ln());
                    (late - early) / (to / from).ln()
                };
                let slopes: Vec<f64> = one.runs.iter().map(slope).collect();
                let beyond: Vec<f64> = slopes.iter().map(|slope| -slope - rate + within).collect();
                let Spread { mean, deviation } = Spread::of(slopes.into_iter());
                let measured = format!("{name}: slope {mean:.2} ± {deviation:.2}");
                Case { outcome: Comparison::of(&beyond, 0.0).outcome, measured }
            }
        })
    }
}
