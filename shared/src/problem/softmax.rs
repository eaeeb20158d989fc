//! Softmax regression, the classifier of two of the problems.

use super::Mismatch;
use crate::linear::{axpy, dot};
use crate::scalar::Scalar;

/// Labelled samples. A constant feature serves as bias.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a, S> {
    /// Samples × features, row-major: the features of a sample are contiguous.
    pub features: &'a [S],
    /// The class of each sample, below the number of classes.
    pub labels: &'a [u8],
}

impl<'a, S> Samples<'a, S> {
    /// How many samples there are.
    pub const fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    fn features_per_sample(&self) -> usize {
        self.features.len() / self.len().max(1)
    }

    fn iter(&self) -> impl Iterator<Item = (&'a [S], u8)> {
        let samples = self.features.chunks_exact(self.features_per_sample().max(1));
        samples.zip(self.labels.iter().copied())
    }
}

/// A linear model with weights `W`, classes × features, row-major: the weights of a class are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes(
    /// How many classes there are.
    pub usize,
);

impl Classes {
    /// Words of `W` for these samples.
    pub(super) fn weights<S>(self, samples: &Samples<'_, S>) -> usize {
        self.0 * samples.features_per_sample()
    }

    /// Whether one model with these classes fits both sets of samples.
    pub(super) fn check<S>(
        self,
        train: &Samples<'_, S>,
        validation: &Samples<'_, S>,
    ) -> Result<(), Mismatch> {
        self.check_one(train)?;
        self.check_one(validation)?;
        if self.weights(train) == self.weights(validation) { Ok(()) } else { Err(Mismatch::Length) }
    }

    fn check_one<S>(self, samples: &Samples<'_, S>) -> Result<(), Mismatch> {
        if self.0 == 0 || samples.is_empty() || samples.features.is_empty() {
            Err(Mismatch::Empty)
        } else if !samples.features.len().is_multiple_of(samples.len()) {
            Err(Mismatch::Length)
        } else if samples.labels.iter().any(|&label| usize::from(label) >= self.0) {
            Err(Mismatch::Index)
        } else {
            Ok(())
        }
    }

    /// Cross-entropy of one sample; `probabilities` receives the predicted ones.
    fn loss<S: Scalar>(self, weights: &[S], sample: &[S], label: u8, probabilities: &mut [S]) -> S {
        let probabilities = &mut probabilities[..self.0];
        for (logit, class) in probabilities.iter_mut().zip(weights.chunks_exact(sample.len())) {
            *logit = dot(class, sample);
        }
        let largest = probabilities.iter().copied().fold(probabilities[0], S::larger);
        let mut total = S::ZERO;
        for value in probabilities.iter_mut() {
            *value = (*value - largest).exp();
            total += *value;
        }
        for value in probabilities.iter_mut() {
            *value = *value / total;
        }
        // A probability of zero would make the loss infinite; the smallest normal number is far
        // below anything training can feel.
        -probabilities[usize::from(label)].larger(S::from_f64(1e-37)).ln()
    }

    /// Calls `visit(sample index, loss)` for each sample and adds what `visit` returns times that sample's
    /// gradient to `dw`.
    pub(super) fn accumulate<S: Scalar>(
        self,
        weights: &[S],
        samples: &Samples<'_, S>,
        dw: &mut [S],
        probabilities: &mut [S],
        mut visit: impl FnMut(usize, S) -> S,
    ) {
        for (index, (sample, label)) in samples.iter().enumerate() {
            let loss = self.loss(weights, sample, label, probabilities);
            let coefficient = visit(index, loss);
            probabilities[usize::from(label)] -= S::ONE;
            for (dw, &slope) in dw.chunks_exact_mut(sample.len()).zip(&*probabilities) {
                axpy(coefficient * slope, sample, dw);
            }
        }
    }

    /// Calls `visit(sample index, loss)` for each sample.
    pub(super) fn losses<S: Scalar>(
        self,
        weights: &[S],
        samples: &Samples<'_, S>,
        probabilities: &mut [S],
        mut visit: impl FnMut(usize, S),
    ) {
        for (index, (sample, label)) in samples.iter().enumerate() {
            visit(index, self.loss(weights, sample, label, probabilities));
        }
    }

    /// Mean cross-entropy over all samples.
    pub fn mean_loss<S: Scalar>(self, weights: &[S], samples: &Samples<'_, S>, probabilities: &mut [S]) -> S {
        let mut total = S::ZERO;
        self.losses(weights, samples, probabilities, |_, loss| total += loss);
        total / S::from_f64(samples.len().max(1) as f64)
    }

    /// Gradient of [`Classes::mean_loss`] into `dw`.
    pub(super) fn mean_gradient<S: Scalar>(
        self,
        weights: &[S],
        samples: &Samples<'_, S>,
        dw: &mut [S],
        probabilities: &mut [S],
    ) {
        dw.fill(S::ZERO);
        let share = S::ONE / S::from_f64(samples.len().max(1) as f64);
        self.accumulate(weights, samples, dw, probabilities, |_, _| share);
    }

    /// The share of samples whose most probable class is their label.
    pub fn accuracy<S: Scalar>(self, weights: &[S], samples: &Samples<'_, S>) -> f64 {
        let hits = samples.iter().filter(|(sample, label)| {
            let mut best = (0, S::ZERO);
            for (class, weights) in weights.chunks_exact(sample.len()).enumerate() {
                let logit = dot(weights, sample);
                if class == 0 || logit > best.1 {
                    best = (class, logit);
                }
            }
            best.0 == usize::from(*label)
        });
        hits.count() as f64 / samples.len().max(1) as f64
    }
}
