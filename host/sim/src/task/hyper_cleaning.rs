//! Data hyper-cleaning on Gaussian blobs, or on samples of the user's own.

use super::blobs::{AgentSamples, Blobs, SampleSet};
use super::labelled_file::{self, LabelledShards};
use super::ranking::{area_under_curve, mean};
use super::{Score, mean_part};
use crate::scenario;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::problem::{Classes, HyperCleaning, Problem};
use fabswarm_shared::scalar::Scalar;
use std::path::Path;

/// Every agent's samples.
#[derive(Clone, Debug)]
pub struct HyperCleaningData<S> {
    shards: Vec<AgentSamples<S>>,
    test: SampleSet<S>,
    classes: Classes,
    regularisation: S,
    /// Whether it is known which labels are wrong.
    knows_truth: bool,
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
            knows_truth: true,
        }
    }

    pub(super) fn read(
        parameters: &scenario::HyperCleaningSection,
        agents: usize,
    ) -> Result<Self, Diagnostic> {
        let path = Path::new(&parameters.file);
        let LabelledShards { shards, test, classes, knows_truth, knows_right } =
            labelled_file::read_equal(path, agents)?;
        if !knows_right && !parameters.trust_labels {
            let samples = agents * (shards[0].train.len() + shards[0].validation.len());
            return Err(labelled_file::refuse_doubtful(path, samples, "--hyper-cleaning-trust-labels true"));
        }
        let regularisation = S::from_f64(parameters.regularisation);
        Ok(Self { shards, test, classes: Classes(classes), regularisation, knows_truth })
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
        let mut scores: Vec<Score> = Vec::new();
        if self.test.len() > 0 {
            scores.push(("test_accuracy".into(), self.classes.accuracy(&model, &self.test.samples())));
        }
        if self.knows_truth {
            scores.push(("mean_weight_of_clean_samples".into(), mean(&clean)));
            scores.push(("mean_weight_of_corrupted_samples".into(), mean(&corrupted)));
            scores.push(("auc_of_finding_corrupted_samples".into(), area_under_curve(&corrupted, &clean)));
        }
        scores
    }
}
