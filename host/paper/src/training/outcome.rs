//! Results of runs of large models.

use serde::{Deserialize, Serialize};

use super::TrainingWorkload;
use crate::spread::Spread;
use crate::workload::SeriesOutcome;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct TrainingPoint {
    pub(crate) round: u32,
    pub(crate) epoch: f64,
    /// Seconds so far, evaluations included.
    pub(crate) seconds: f64,
    /// Bytes that all agents have sent.
    pub(crate) bytes: u64,
    pub(crate) accuracy: f64,
    /// AUC of the weights as a detector of wrong labels.
    pub(crate) auc: Option<f64>,
    pub(crate) regularisation: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TrainingRunOutcome {
    /// Its evaluations, at least one.
    pub(crate) points: Vec<TrainingPoint>,
    pub(crate) has_diverged: bool,
    /// Memory that it took on its device.
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) device: String,
}

impl TrainingRunOutcome {
    pub(crate) fn last(&self) -> &TrainingPoint {
        &self.points[self.points.len() - 1]
    }
}

pub(crate) type TrainingSeries = SeriesOutcome<TrainingWorkload>;

impl TrainingSeries {
    pub(crate) fn accuracy(&self) -> Spread {
        Spread::of(self.runs.iter().map(|run| run.last().accuracy))
    }

    /// The mean over the runs of something at the end, where all of them have it.
    pub(crate) fn mean(&self, value: impl Fn(&TrainingRunOutcome) -> Option<f64>) -> Option<f64> {
        let values: Option<Vec<f64>> = self.runs.iter().map(value).collect();
        values.map(|values| Spread::of(values.into_iter()).mean)
    }
}
