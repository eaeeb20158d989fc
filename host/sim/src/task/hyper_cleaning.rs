//! Data hyper-cleaning on Gaussian blobs.

use super::blobs::{AgentSamples, Blobs, SampleSet};
use super::ranking::{area_under_curve, mean};
use super::{Score, mean_part};
use crate::scenario;
use fabswarm_shared::problem::{Classes, HyperCleaning, Problem};
use fabswarm_shared::scalar::Scalar;

/// Every agent's samples.
#[derive(Clone, Debug)]
pub struct HyperCleaningData<S> {
    shards: Vec<AgentSamples<S>>,
    test: SampleSet<S>,
    classes: Classes,
    regularisation: S,
}

impl<S: Scalar> HyperCleaningData<S> {
    pub(super) fn draw(parameters: &scenario::HyperCleaningSection, seed: u64, agents: usize) -> Self {
        let blobs = Blobs {
            features: parameters.features,
            classes: parameters.classes,
            train_samples: parameters.train_samples,
            validation_samples: parameters.validation_samples,
            corruption: parameters.corruption,
            seed,
        };
        Self {
            shards: blobs.shards(agents),
            test: blobs.test(),
            classes: Classes(parameters.classes),
            regularisation: S::from_f64(parameters.regularisation),
        }
    }

    #[inline]
    pub(super) fn problem(&self, agent: usize) -> HyperCleaning<'_, S> {
        let shard = &self.shards[agent];
        HyperCleaning {
            train: shard.train.samples(),
            validation: shard.validation.samples(),
            classes: self.classes,
            regularisation: self.regularisation,
        }
    }

    pub(super) fn scores(&self, decisions: &[S]) -> Vec<Score> {
        let shape = self.problem(0).shape();
        let (mut clean, mut corrupted) = (Vec::new(), Vec::new());
        for (decision, shard) in decisions.chunks_exact(shape.words()).zip(&self.shards) {
            for (psi, &is_corrupted) in decision[..shape.x].iter().zip(&shard.is_corrupted) {
                let weight = psi.sigmoid().to_f64();
                if is_corrupted { corrupted.push(weight) } else { clean.push(weight) }
            }
        }
        let model = mean_part(decisions, shape, shape.x..shape.x + shape.y);
        vec![
            ("test_accuracy".into(), self.classes.accuracy(&model, &self.test.samples())),
            ("mean_weight_of_clean_samples".into(), mean(&clean)),
            ("mean_weight_of_corrupted_samples".into(), mean(&corrupted)),
            ("auc_of_finding_corrupted_samples".into(), area_under_curve(&corrupted, &clean)),
        ]
    }
}
