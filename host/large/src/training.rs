//! Training a swarm of large agents from scenario to a scored model.
//!
//! [`TrainingSetup`] holds what a run needs before any device is used, [`TrainingPlan`] what it will take of one. Everything that can be
//! refused is refused until [`TrainingPlan::start`] returns, and nothing is written before. The [`Trainer`] then goes through the
//! rounds, evaluates the swarm now and then, keeps checkpoints and stops when a loss is NaN or infinite; the
//! [`report::TrainingReport`] records the results.

pub mod batches;
pub mod checkpoint;
mod constants;
pub mod events;
pub(crate) mod links;
mod metrics_table;
pub mod report;
pub mod setup;
mod summary;
mod trainer;
mod weights_figure;

use std::path::PathBuf;

pub use setup::TrainingSetup;
pub use trainer::{Trainer, TrainingPlan};

use crate::data::cleaning_score::CleaningScore;
use crate::device::{self, MemoryUse};
use crate::fab::ModelScore;
use crate::plan::DoesNotFit;
use fabswarm_sim::air;
use fabswarm_sim::air::FrameCounts;
use fabswarm_sim::record::{self, AirReport, StoppedBecause};

/// Why a run cannot start, or did not get to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Device(#[from] device::Error),
    #[error(transparent)]
    DoesNotFit(#[from] DoesNotFit),
    #[error(transparent)]
    Data(#[from] crate::data::Error),
    #[error(transparent)]
    Pretrained(#[from] crate::models::pretrained::Error),
    #[error(transparent)]
    Air(#[from] air::Error),
    #[error(transparent)]
    Record(#[from] record::Error),
    #[error("{what}\nhelp: {remedy}")]
    Unfit { what: &'static str, remedy: &'static str },
    #[error("{key} = {value} does not fit\nhelp: {remedy}")]
    Setting { key: &'static str, value: String, remedy: String },
    #[error("cannot resume from {path}: {what}\nhelp: {remedy}", path = path.display())]
    Resume { path: PathBuf, what: String, remedy: String },
}

/// How good a swarm is after some rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    pub round: u32,
    pub epoch: f64,
    /// Of the mean model on the test samples.
    pub test: ModelScore,
    /// Root mean square distance of agents to their mean, relative to its norm.
    pub consensus_error: f64,
    /// How well weights separate samples with wrong labels from others, where samples have weights.
    pub cleaning: Option<CleaningScore>,
    /// Mean of the learned regularisation strengths.
    pub strength: Option<f64>,
    /// Bytes all agents sent so far, each frame counted once.
    pub sent_bytes: u64,
    pub frames: FrameCounts,
    /// Time the rounds so far took with their evaluations, those before a resumption included.
    pub seconds: f64,
}

/// Follows a run.
pub trait TrainingObserver {
    /// After every round.
    fn round(&mut self, round: u32, rounds: u32);
    /// After every evaluation.
    ///
    /// # Errors
    /// When it cannot be recorded.
    fn evaluated(&mut self, evaluation: &Evaluation) -> Result<(), record::Error>;
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingOutcome {
    pub stopped_because: StoppedBecause,
    pub evaluation: Evaluation,
    /// The mean model, packed.
    pub mean: Vec<f32>,
    /// Weight and truth of every training sample, where it has one.
    pub weights: Vec<(f32, bool)>,
    /// `Σt + Σ(what waits) − Σd`, relative to gradients: tracking mass that was lost or created.
    pub tracking_defect: f64,
    /// What the air did to frames, where they went over it.
    pub air: Option<AirReport>,
    pub memory: MemoryReport,
}

/// Bytes of memory, as planned and as used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    pub planned: u64,
    pub used: Option<MemoryUse>,
}

#[cfg(test)]
mod tests;
