//! Results of runs of large models.

use serde::{Deserialize, Serialize};

use super::TrainingWorkload;
use crate::spread::Spread;
use crate::workload::SeriesOutcome;

/// One evaluation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TrainingPoint {
    /// Rounds so far.
    pub round: u32,
    /// Epochs so far.
    pub epoch: f64,
    /// Seconds so far, evaluations included.
    pub seconds: f64,
    /// Bytes that all agents have sent.
    pub bytes: u64,
    /// Test accuracy of the mean model.
    pub accuracy: f64,
    /// AUC of the weights as a detector of wrong labels.
    pub auc: Option<f64>,
    /// The learned regularisation.
    pub regularisation: Option<f64>,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrainingRunOutcome {
    /// Its evaluations, at least one.
    pub points: Vec<TrainingPoint>,
    /// Whether it diverged.
    pub has_diverged: bool,
    /// Memory that it took on its device.
    pub memory_bytes: Option<u64>,
    /// The name of its device.
    pub device: String,
}

impl TrainingRunOutcome {
    /// Where it ended.
    pub fn last(&self) -> &TrainingPoint {
        &self.points[self.points.len() - 1]
    }
}

/// All runs of a series.
pub type TrainingSeries = SeriesOutcome<TrainingWorkload>;

impl TrainingSeries {
    /// Accuracy at the end.
    pub fn accuracy(&self) -> Spread {
        Spread::of(self.runs.iter().map(|run| run.last().accuracy))
    }

    /// The mean over the runs of something at the end, where all of them have it.
    pub fn mean(&self, value: impl Fn(&TrainingRunOutcome) -> Option<f64>) -> Option<f64> {
        let values: Option<Vec<f64>> = self.runs.iter().map(value).collect();
        values.map(|values| Spread::of(values.into_iter()).mean)
    }
}
