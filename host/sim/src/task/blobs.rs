//! Labelled samples from Gaussian blobs, for the classifiers that fit a microcontroller.

use super::converted;
use super::labelled_file::LabelledShards;
use fabswarm_shared::problem::{Classes, Samples};
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::scalar::Scalar;

/// How far the centres of the classes lie from the origin, in standard deviations of a blob.
const SEPARATION: f64 = 1.5;
/// Samples that a trained model is judged on.
const TEST_SAMPLES: usize = 500;
/// The share of an agent's samples that comes from its favourite class.
const FAVOURITE_SHARE: f64 = 0.4;

/// Samples that belong to one holder.
#[derive(Clone, Debug, Default)]
pub(super) struct SampleSet<S> {
    features: Vec<S>,
    labels: Vec<u8>,
}

impl<S> SampleSet<S> {
    pub(super) fn push(&mut self, features: impl IntoIterator<Item = S>, label: u8) {
        self.features.extend(features);
        self.labels.push(label);
    }

    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    pub(super) fn samples(&self) -> Samples<'_, S> {
        Samples { features: &self.features, labels: &self.labels }
    }
}

/// One agent's samples.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentSamples<S> {
    pub(super) train: SampleSet<S>,
    pub(super) validation: SampleSet<S>,
    /// Which training labels are wrong.
    pub(super) is_corrupted: Vec<bool>,
}

/// The data to draw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blobs {
    pub(super) features: usize,
    pub(super) classes: usize,
    pub(super) train_samples: usize,
    pub(super) validation_samples: usize,
    pub(super) corruption: f64,
    pub(super) seed: u64,
}

impl Blobs {
    /// The centre of each class. The last feature is a constant one, the bias.
    fn centres(&self) -> Vec<Vec<f64>> {
        let mut common = Stream::new(self.seed, u32::MAX, 0, Purpose::Problem);
        let mut centre = || (1..self.features).map(|_| SEPARATION * common.gaussian_f64()).collect();
        (0..self.classes).map(|_| centre()).collect()
    }

    fn samples<S: Scalar>(
        &self,
        count: usize,
        centres: &[Vec<f64>],
        stream: &mut Stream,
        favourite: Option<usize>,
    ) -> SampleSet<S> {
        let mut owned = SampleSet::default();
        for _ in 0..count {
            let label = match favourite {
                Some(class) if stream.uniform_f64() < FAVOURITE_SHARE => class,
                _ => stream.below(self.classes as u32) as usize,
            };
            let place: Vec<f64> =
                centres[label].iter().map(|centre| centre + stream.gaussian_f64()).collect();
            owned.push(converted::<S>(place.into_iter().chain([1.0])), label as u8);
        }
        owned
    }

    /// The samples of each agent, and clean samples that no agent has seen. Agents differ in their favourite class.
    pub(super) fn draw<S: Scalar>(&self, agents: usize) -> LabelledShards<S> {
        let centres = self.centres();
        let shard = |agent: usize| {
            let mut stream = Stream::new(self.seed, agent as u32, 0, Purpose::Problem);
            let favourite = Some(agent % self.classes);
            let mut train = self.samples(self.train_samples, &centres, &mut stream, favourite);
            let validation = self.samples(self.validation_samples, &centres, &mut stream, favourite);
            let mut is_corrupted = Vec::with_capacity(train.labels.len());
            for label in &mut train.labels {
                let corrupted = stream.uniform_f64() < self.corruption;
                if corrupted {
                    *label = ((usize::from(*label) + 1) % self.classes) as u8;
                }
                is_corrupted.push(corrupted);
            }
            AgentSamples { train, validation, is_corrupted }
        };
        let mut stream = Stream::new(self.seed, u32::MAX, 1, Purpose::Problem);
        LabelledShards {
            shards: (0..agents).map(shard).collect(),
            test: self.samples(TEST_SAMPLES, &centres, &mut stream, None),
            classes: Classes(self.classes),
            knows_truth: true,
            knows_right: true,
        }
    }
}
