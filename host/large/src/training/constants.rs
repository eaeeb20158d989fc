//! What a scenario means for a swarm of large agents.

use crate::fab::{FabConfig, Ledger, UpperLevel};
use fabswarm_sim::scenario::{Scenario, TrainingMethod, TrainingSection};

/// The constants of the swarm.
pub(super) fn config(scenario: &Scenario, ledger: Option<Ledger>) -> FabConfig {
    let (algorithm, training) = (&scenario.algorithm, &scenario.training);
    let regularisation = training.regularisation;
    FabConfig {
        agents: scenario.swarm.agents,
        task: match training.method {
            TrainingMethod::Cleaning => UpperLevel::Cleaning { regularisation },
            TrainingMethod::Tuning => UpperLevel::Tuning { start: regularisation },
            TrainingMethod::PushPullNoisy | TrainingMethod::PushPullAll | TrainingMethod::PushPullClean => {
                UpperLevel::SingleLevel { regularisation }
            }
        },
        penalty: algorithm.lambda,
        normalise: algorithm.normalise_by_lambda,
        steps: [algorithm.eta_x, algorithm.eta_y, algorithm.eta_z],
        momentum: algorithm.momentum,
        validation_batch: if training.method.is_bilevel() { training.batch } else { 0 },
        training_batch: training.batch,
        seed: scenario.seed,
        ledger,
    }
}

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunLength {
    /// Rounds in which the mean agent goes through its training samples once.
    pub(super) epoch: u32,
    /// Rounds of the run.
    pub(super) rounds: u32,
}

impl RunLength {
    /// The length of a run on `samples` training samples of `agents` agents.
    pub(super) fn new(training: &TrainingSection, agents: usize, samples: usize) -> Self {
        let epoch = samples.div_ceil(agents * training.batch).max(1) as u32;
        RunLength { epoch, rounds: training.epochs.saturating_mul(epoch) }
    }
}
