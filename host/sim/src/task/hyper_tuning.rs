//! Hyper-parameter tuning on Gaussian blobs, or on samples of the user's own.

use super::blobs::Blobs;
use super::labelled_file::{self, LabelledShards};
use super::{Score, mean_part};
use crate::scenario;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::problem::{HyperTuning, Problem};
use fabswarm_shared::scalar::Scalar;
use std::path::Path;

/// Every agent's samples.
#[derive(Clone, Debug)]
pub struct HyperTuningData<S> {
    data: LabelledShards<S>,
    pub(super) initial_tau: S,
}

impl<S: Scalar> HyperTuningData<S> {
    pub(super) fn draw(parameters: &scenario::HyperTuningSection, seed: u64, agents: usize) -> Self {
        let blobs = Blobs {
            features: parameters.features,
            classes: parameters.classes,
            train_samples: parameters.train_samples,
            validation_samples: parameters.validation_samples,
            corruption: parameters.corruption,
            seed,
        };
        Self { data: blobs.draw(agents), initial_tau: S::from_f64(parameters.initial_tau) }
    }

    pub(super) fn read(parameters: &scenario::HyperTuningSection, agents: usize) -> Result<Self, Diagnostic> {
        let data = labelled_file::read(Path::new(&parameters.file), agents)?;
        Ok(Self { data, initial_tau: S::from_f64(parameters.initial_tau) })
    }

    #[inline]
    pub(super) fn problem(&self, agent: usize) -> HyperTuning<'_, S> {
        let shard = &self.data.shards[agent];
        HyperTuning {
            train: shard.train.samples(),
            validation: shard.validation.samples(),
            classes: self.data.classes,
        }
    }

    pub(super) fn scores(&self, decisions: &[S]) -> Vec<Score> {
        let shape = self.problem(0).shape();
        let tau = mean_part(decisions, shape, 0..1);
        let model = mean_part(decisions, shape, 1..1 + shape.y);
        let mut scores: Vec<Score> = vec![("tau".into(), tau[0].to_f64())];
        self.data.push_accuracy(&model, &mut scores);
        scores
    }
}
