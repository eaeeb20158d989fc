//! Data hyper-cleaning on Gaussian blobs, or on samples of the user's own.

use super::blobs::Blobs;
use super::labelled_file::{self, LabelledShards};
use super::ranking::separation;
use super::{Score, mean_part};
use crate::scenario;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::problem::{HyperCleaning, Problem};
use fabswarm_shared::scalar::Scalar;
use std::path::Path;

/// Every agent's samples.
#[derive(Clone, Debug)]
pub struct HyperCleaningData<S> {
    data: LabelledShards<S>,
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
        Self { data: blobs.draw(agents), regularisation: S::from_f64(parameters.regularisation) }
    }

    pub(super) fn read(
        parameters: &scenario::HyperCleaningSection,
        agents: usize,
    ) -> Result<Self, Diagnostic> {
        let path = Path::new(&parameters.file);
        let data: LabelledShards<S> = labelled_file::read(path, agents)?;
        // A weight for each training sample is what a decision consists of.
        let mut counts = data.shards.iter().map(|shard| shard.train.len()).enumerate();
        let first = data.shards[0].train.len();
        if let Some((agent, other)) = counts.find(|(_, count)| *count != first) {
            let what = format!("agent 0 has {first} training samples and agent {agent} has {other}");
            let remedy =
                "give every agent as many: leave rows out, or drop the column `agent` to have them dealt out";
            return Err(Diagnostic::of_file(path, what, remedy));
        }
        if !data.knows_right && !parameters.trust_labels {
            let samples = agents * (data.shards[0].train.len() + data.shards[0].validation.len());
            return Err(labelled_file::refuse_doubtful(path, samples, "--hyper-cleaning-trust-labels true"));
        }
        Ok(Self { data, regularisation: S::from_f64(parameters.regularisation) })
    }

    #[inline]
    pub(super) fn problem(&self, agent: usize) -> HyperCleaning<'_, S> {
        let shard = &self.data.shards[agent];
        HyperCleaning {
            train: shard.train.samples(),
            validation: shard.validation.samples(),
            classes: self.data.classes,
            regularisation: self.regularisation,
        }
    }

    pub(super) fn scores(&self, decisions: &[S]) -> Vec<Score> {
        let shape = self.problem(0).shape();
        let mut scores = Vec::new();
        self.data.push_accuracy(&mean_part(decisions, shape, shape.x..shape.x + shape.y), &mut scores);
        if self.data.knows_truth {
            let is_corrupted = self.data.shards.iter().map(|shard| &shard.is_corrupted[..]);
            let names = [
                "mean_weight_of_clean_samples",
                "mean_weight_of_corrupted_samples",
                "auc_of_finding_corrupted_samples",
            ];
            scores.extend(separation(decisions, shape, is_corrupted, names));
        }
        scores
    }
}
