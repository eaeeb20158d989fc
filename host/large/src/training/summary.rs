//! A training run as one page of JSON.

use serde::Serialize;

use super::{CleaningScore, TrainingOutcome};
use crate::device::MemoryUse;
use fabswarm_sim::record::CommonSummary;
use fabswarm_sim::scenario::ResolvedScenario;

/// The results of a run, `summary.json`.
#[derive(Debug, Serialize)]
pub(super) struct TrainingSummary<'a> {
    #[serde(flatten)]
    common: CommonSummary,
    data: &'a str,
    model: &'a str,
    method: &'static str,
    /// Times the mean agent went through its training samples.
    epochs: f64,
    test_accuracy: f64,
    test_loss: f64,
    #[serde(flatten)]
    cleaning: CleaningScore,
    regularisation: Option<f64>,
    /// Bytes of the frames that were sent.
    sent_bytes: u64,
    /// Bytes that the plan counted on the device.
    planned_memory_bytes: u64,
    /// The most physical memory the whole process had at once, on a CPU.
    peak_resident_bytes: Option<u64>,
    /// The most bytes this process had allocated on a GPU at once, whatever others use.
    gpu_memory_bytes: Option<u64>,
}

impl<'a> TrainingSummary<'a> {
    pub(super) fn of(resolved: &'a ResolvedScenario, outcome: &'a TrainingOutcome) -> Self {
        let (scenario, now) = (&resolved.scenario, &outcome.evaluation);
        let (peak_resident_bytes, gpu_memory_bytes) = match outcome.memory {
            Some(MemoryUse::PeakResident(bytes)) => (Some(bytes), None),
            Some(MemoryUse::OnDevice(bytes)) => (None, Some(bytes)),
            None => (None, None),
        };
        let (rounds, because) = (now.round.into(), outcome.stopped_because);
        TrainingSummary {
            common: CommonSummary {
                consensus_error: now.consensus_error,
                tracking_defect: outcome.tracking_defect,
                air: outcome.air.clone(),
                ..CommonSummary::new(scenario, because, rounds, now.seconds, now.frames)
            },
            data: &scenario.training.data,
            model: &scenario.training.model,
            method: scenario.training.method.word(),
            epochs: now.epoch,
            test_accuracy: now.test.accuracy,
            test_loss: now.test.loss,
            cleaning: now.cleaning.unwrap_or_default(),
            regularisation: now.strength,
            sent_bytes: now.sent_bytes,
            planned_memory_bytes: outcome.planned_bytes,
            peak_resident_bytes,
            gpu_memory_bytes,
        }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain numbers and strings serialise") + "\n"
    }
}
