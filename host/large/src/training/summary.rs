//! A training run as one page of JSON, with the keys of a trial's.

use serde::Serialize;

use super::TrainingOutcome;
use crate::device::MemoryUse;
use fabswarm_sim::record::{AirReport, StoppedBecause};
use fabswarm_sim::scenario::ResolvedScenario;

/// The results of a run, `summary.json`. NaN and infinity are null.
#[derive(Debug, Serialize)]
pub(super) struct TrainingSummary<'a> {
    version: &'static str,
    data: &'a str,
    model: &'a str,
    method: &'static str,
    algorithm: &'static str,
    topology: &'static str,
    agents: usize,
    seed: u64,
    stopped_because: StoppedBecause,
    rounds: u32,
    /// Times the mean agent went through its training samples.
    epochs: f64,
    test_accuracy: f64,
    test_loss: f64,
    consensus_error: f64,
    tracking_defect: f64,
    cleaning_auc: Option<f64>,
    cleaning_precision: Option<f64>,
    cleaning_recall: Option<f64>,
    mean_weight_corrupted: Option<f64>,
    mean_weight_clean: Option<f64>,
    regularisation: Option<f64>,
    /// Time the rounds took with their evaluations, over all parts of a resumed run.
    seconds: f64,
    rounds_per_second: f64,
    /// Frames sent; each may be heard by many, as copies.
    frames_sent: u64,
    /// Bytes of these frames.
    sent_bytes: u64,
    copies_lost: u64,
    copies_refused: u64,
    /// Bytes that the plan counted on the device.
    planned_memory_bytes: u64,
    /// The most physical memory the whole process had at once, on a CPU.
    peak_resident_bytes: Option<u64>,
    /// The most bytes this process had allocated on a GPU at once, whatever others use.
    gpu_memory_bytes: Option<u64>,
    /// Counts of frames by outcome, where frames go over the air.
    air: Option<&'a AirReport>,
}

impl<'a> TrainingSummary<'a> {
    pub(super) fn of(resolved: &'a ResolvedScenario, outcome: &'a TrainingOutcome) -> Self {
        let (scenario, now) = (&resolved.scenario, &outcome.evaluation);
        let cleaning = now.cleaning.as_ref();
        let (peak_resident_bytes, gpu_memory_bytes) = match outcome.memory.used {
            Some(MemoryUse::PeakResident(bytes)) => (Some(bytes), None),
            Some(MemoryUse::OnDevice(bytes)) => (None, Some(bytes)),
            None => (None, None),
        };
        TrainingSummary {
            version: env!("CARGO_PKG_VERSION"),
            data: &scenario.training.data,
            model: &scenario.training.model,
            method: scenario.training.method.word(),
            algorithm: scenario.algorithm.kind.word(),
            topology: scenario.network.topology.word(),
            agents: scenario.swarm.agents,
            seed: scenario.seed,
            stopped_because: outcome.stopped_because,
            rounds: now.round,
            epochs: now.epoch,
            test_accuracy: now.test.accuracy,
            test_loss: now.test.loss,
            consensus_error: now.consensus_error,
            tracking_defect: outcome.tracking_defect,
            cleaning_auc: cleaning.and_then(|cleaning| cleaning.auc),
            cleaning_precision: cleaning.and_then(|cleaning| cleaning.precision),
            cleaning_recall: cleaning.and_then(|cleaning| cleaning.recall),
            mean_weight_corrupted: cleaning.and_then(|cleaning| cleaning.mean_weight_corrupted),
            mean_weight_clean: cleaning.and_then(|cleaning| cleaning.mean_weight_clean),
            regularisation: now.strength,
            seconds: now.seconds,
            rounds_per_second: f64::from(now.round) / now.seconds.max(f64::MIN_POSITIVE),
            frames_sent: now.frames.sent,
            sent_bytes: now.sent_bytes,
            copies_lost: now.frames.lost,
            copies_refused: now.frames.refused,
            planned_memory_bytes: outcome.memory.planned,
            peak_resident_bytes,
            gpu_memory_bytes,
            air: outcome.air.as_ref(),
        }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain numbers and strings serialise") + "\n"
    }
}
