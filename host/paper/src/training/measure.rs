//! Measures of runs of large models, and conditions on them.

use serde::Deserialize;

use super::{TrainingRunOutcome, TrainingSeries, TrainingWorkload};
use crate::case::Case;
use crate::workload::{Condition, Measure};

/// A number per run.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AccuracyMeasure {
    /// The test accuracy at the end; the higher, the better.
    Accuracy,
    /// The seconds to the lower of two final accuracies on the same seed; a tenth of them counts.
    SecondsToBoth,
}

/// A condition on a single series.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AccuracyCondition {
    /// Its regularisation ends, on average, between two values.
    RegularisationBetween(f64, f64),
}

impl Measure<TrainingWorkload> for AccuracyMeasure {
    fn values(self, pair: [(&TrainingSeries, &TrainingRunOutcome); 2]) -> [f64; 2] {
        match self {
            Self::Accuracy => pair.map(|(_, run)| run.last().accuracy),
            Self::SecondsToBoth => {
                // Not the lower mean, which half of the seeds of that method never reach.
                let level = pair.map(|(_, run)| run.last().accuracy).into_iter().fold(1.0, f64::min);
                let reached = |run: &TrainingRunOutcome| {
                    run.points.iter().find(|point| point.accuracy >= level).copied()
                };
                pair.map(|(_, run)| reached(run).map_or(f64::INFINITY, |point| point.seconds))
            }
        }
    }

    fn advantage(self, own: f64, other: f64) -> f64 {
        let far = |seconds: f64| seconds.max(1e-9).ln().min(700.0);
        match self {
            Self::Accuracy => own - other,
            Self::SecondsToBoth => far(other) - far(own),
        }
    }

    fn tie(self, margin: f64) -> f64 {
        if matches!(self, Self::Accuracy) { margin } else { 0.1 }
    }

    fn text(self, _: &TrainingSeries, mean: f64) -> String {
        if matches!(self, Self::Accuracy) { format!("{mean:.3}") } else { format!("{mean:.0} s") }
    }
}

impl Condition<TrainingWorkload> for AccuracyCondition {
    fn judge(&self, one: &TrainingSeries) -> Option<Case> {
        let Self::RegularisationBetween(least, most) = self;
        let end = one.mean(|run| run.last().regularisation)?;
        Some(Case {
            outcome: (*least..*most).contains(&end).into(),
            measured: format!("{}: {end:.4}", one.name()),
        })
    }
}
