//! Training a swarm of large agents from scenario to a scored model.
//!
//! [`TrainingSetup`] holds the data and the model of a run, [`TrainingPlan`] its use of a device. All refusals come before
//! [`TrainingPlan::start`] returns, and nothing is written before. The [`Trainer`] then does the rounds, evaluates the swarm,
//! keeps checkpoints and stops when a loss is NaN or infinite; the [`report::TrainingReport`] records the results.

mod batches;
pub mod block;
pub mod checkpoint;
mod cleaning_score;
mod constants;
mod events;
pub(crate) mod links;
mod metrics_table;
mod model_choice;
mod model_file;
pub mod report;
pub mod setup;
mod summary;
mod trainer;
mod training_plan;
mod verdict;
mod weights;

use std::fmt::Display;
use std::path::Path;

pub use cleaning_score::CleaningScore;
pub use setup::TrainingSetup;
pub use trainer::{Trainer, TrainingRound};
pub use training_plan::TrainingPlan;
pub use weights::{SampleWeight, WeightHistogram};

use crate::device::MemoryUse;
use crate::fab::ModelScore;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::air::FrameCounts;
use fabswarm_sim::record::{self, AirReport, StoppedBecause};

/// Why a run cannot start, or did not get to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its folder cannot be written.
    #[error(transparent)]
    Record(#[from] record::Error),
    /// It is refused, or ended early.
    #[error(transparent)]
    Refused(#[from] Diagnostic),
}

impl Error {
    fn unfit(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Diagnostic::new(what, remedy).into()
    }

    /// Refuses the value of a key.
    fn setting(key: &str, value: impl Display, remedy: impl Into<String>) -> Self {
        Self::unfit(format!("{key} = {value} does not fit"), remedy)
    }

    /// Refuses to go on with the run that has the file or folder at `path`.
    fn resume(path: &Path, what: impl Display, remedy: impl Into<String>) -> Self {
        Self::unfit(format!("cannot resume from {}: {what}", path.display()), remedy)
    }
}

/// The scores of a swarm after some rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// Rounds done.
    pub round: u32,
    /// Passes over the training samples.
    pub epoch: f64,
    /// Score of the mean model on the test samples.
    pub test: ModelScore,
    /// Score of the mean z on the test samples, where z minimises `g − f/λ`.
    pub twin: Option<ModelScore>,
    /// Root mean square distance of agents to their mean, relative to its norm.
    pub consensus_error: f64,
    /// Scores of the weights as a detector of wrong labels, where samples have weights.
    pub cleaning: Option<CleaningScore>,
    /// Mean of the learned regularisation strengths.
    pub strength: Option<f64>,
    /// Bytes all agents sent so far, each frame counted once.
    pub sent_bytes: u64,
    /// Frames sent, received and lost so far.
    pub frames: FrameCounts,
    /// Time the rounds so far took with their evaluations, those before a resumption included.
    pub seconds: f64,
    /// Time that a round took on average since the last evaluation, without evaluations and checkpoints.
    pub round_seconds: Option<f64>,
    /// Memory that the run has used so far.
    pub memory: Option<MemoryUse>,
    /// The distribution of weights, where samples have weights.
    pub weights: Option<WeightHistogram>,
}

/// Follows a run.
pub trait TrainingObserver {
    /// After every round.
    fn round(&mut self, end: TrainingRound<'_>);
    /// After every evaluation.
    ///
    /// # Errors
    /// When it cannot be recorded.
    fn evaluated(&mut self, evaluation: &Evaluation) -> Result<(), record::Error>;
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingOutcome {
    /// Why the run ended.
    pub stopped_because: StoppedBecause,
    /// The last evaluation.
    pub evaluation: Evaluation,
    /// The mean model, packed.
    pub mean: Vec<f32>,
    /// The learned weights of the training samples, where they have some.
    pub weights: Vec<SampleWeight>,
    /// `Σt + Σ(waiting mass) − Σd`, relative to gradients: tracking mass that was lost or created.
    pub tracking_defect: f64,
    /// Losses and delays of frames, where they went over an air.
    pub air: Option<AirReport>,
    /// Bytes of memory that were planned.
    pub planned_bytes: u64,
    /// Memory that the run has used, where the device tells.
    pub memory: Option<MemoryUse>,
}

/// The scores of always predicting the most common class of the test samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChanceBaseline {
    /// The share of that class.
    pub accuracy: f64,
    /// The loss of giving every class the same probability.
    pub loss: f64,
}

impl ChanceBaseline {
    /// A model no more accurate than chance has diverged where its loss has grown by this factor;
    /// over-fitting on wrong labels alone leaves the accuracy above chance.
    const GROWN: f64 = 4.0;
    /// A loss that has grown by this factor means divergence at any accuracy.
    const GROWN_FAR: f64 = 100.0;

    /// Returns whether a model with these scores has diverged.
    pub fn is_diverged(&self, test: &ModelScore) -> bool {
        let growth = test.loss / self.loss;
        !growth.is_finite()
            || growth > Self::GROWN_FAR
            || (test.accuracy <= self.accuracy && growth > Self::GROWN)
    }
}

#[cfg(test)]
mod tests;
