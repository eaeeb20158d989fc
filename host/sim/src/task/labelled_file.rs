//! Labelled samples of the user's own, for the classifiers that fit a microcontroller.

use super::blobs::{AgentSamples, SampleSet};
use super::{Score, converted};
use crate::data_file::{SampleFile, SampleLabels};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::problem::Classes;
use fabswarm_shared::scalar::Scalar;
use std::path::Path;

/// Samples from one for validation to the next, where there is no column `validation`.
const VALIDATION: usize = 10;

/// The samples of all agents, of a file or drawn.
#[derive(Clone, Debug)]
pub(super) struct LabelledShards<S> {
    pub(super) shards: Vec<AgentSamples<S>>,
    pub(super) test: SampleSet<S>,
    pub(super) classes: Classes,
    /// Whether it is known which labels are wrong.
    pub(super) knows_truth: bool,
    /// Whether any label is known to be right.
    pub(super) knows_right: bool,
}

impl<S: Scalar> LabelledShards<S> {
    /// Adds the share of test samples that a model gets right, where there are some.
    pub(super) fn push_accuracy(&self, model: &[S], scores: &mut Vec<Score>) {
        if self.test.len() > 0 {
            scores.push(("test_accuracy".into(), self.classes.accuracy(model, &self.test.samples())));
        }
    }
}

/// Reads the samples of `agents` agents. Each gets a last feature that is always one, the bias.
pub(super) fn read<S: Scalar>(path: &Path, agents: usize) -> Result<LabelledShards<S>, Diagnostic> {
    let (file, labels) = SampleFile::read_labelled(path)?;
    let SampleLabels { given, truth, test: test_labels, validation, classes } = labels;
    let features = |inputs: &[f64]| converted::<S>(inputs.iter().copied().chain([1.0]));
    let inputs: Vec<&[f64]> = file.train.rows().collect();
    let mut shards = Vec::with_capacity(agents);
    for (agent, samples) in file.shards(agents, validation.as_deref())?.into_iter().enumerate() {
        let mut shard = AgentSamples::default();
        for (place, &sample) in samples.iter().enumerate() {
            let right = truth.as_ref().unwrap_or(&given)[sample];
            let is_validation =
                validation.as_ref().map_or(place % VALIDATION == 0, |validation| validation[sample]);
            let features = features(inputs[sample]);
            if is_validation {
                shard.validation.push(features, right);
            } else {
                shard.train.push(features, given[sample]);
                shard.is_corrupted.push(given[sample] != right);
            }
        }
        for (samples, kind) in [(&shard.train, "training"), (&shard.validation, "validation")] {
            if samples.len() == 0 {
                return Err(file.refuse(
                    format!("agent {agent} has no {kind} sample"),
                    "mark some of its samples with 1 in the column `validation`, and some with 0",
                ));
            }
        }
        shards.push(shard);
    }
    let mut test = SampleSet::default();
    for (inputs, &label) in file.test.rows().zip(&test_labels) {
        test.push(features(inputs), label);
    }
    let knows_truth = truth.is_some();
    Ok(LabelledShards {
        shards,
        test,
        classes: Classes(classes),
        knows_truth,
        knows_right: knows_truth || validation.is_some(),
    })
}

/// Refuses to clean the labels of `samples` training samples where none is known to be right. `flag` cleans them all the same.
pub fn refuse_doubtful(path: &Path, samples: usize, flag: &str) -> Diagnostic {
    let what =
        "no label is known to be right, and cleaning that is validated on wrong labels prefers wrong labels";
    let check = samples.div_ceil(VALIDATION);
    let remedy = format!(
        "check the labels of about {check} of the {samples} training samples, some of each agent, and mark these samples with 1 in a column `validation`, the others with 0; or give true labels; or take the labels as right with `{flag}`"
    );
    Diagnostic::of_file(path, what, remedy)
}
