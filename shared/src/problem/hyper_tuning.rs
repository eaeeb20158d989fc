//! Hyper-parameter tuning: the regulariser τ of a classifier, learned on clean validation samples.
//!
//! $$f_i(\tau, w) = \ell(w; D_{val}),\qquad g_i(\tau, w) = \ell(w; D_{tr}) + \tau\lVert w\rVert^2$$
//!
//! (the paper's eq. (15)). Without a bound τ runs below zero, the lower level loses its minimum
//! and FAB diverges; [`Problem::project`] keeps τ ≥ 0.

use super::softmax::{Classes, Samples};
use super::{Mismatch, NoiseKey, Problem, Shape};
use crate::linear::{axpy, squared_norm};
use crate::scalar::Scalar;

/// One agent's hyper-parameter-tuning problem.
#[derive(Clone, Copy, Debug)]
pub struct HyperTuning<'a, S> {
    /// Samples of the lower level, some of them with wrong labels.
    pub train: Samples<'a, S>,
    /// Clean samples of the upper level.
    pub validation: Samples<'a, S>,
    /// How many classes there are.
    pub classes: Classes,
}

impl<S: Scalar> Problem<S> for HyperTuning<'_, S> {
    fn shape(&self) -> Shape {
        Shape { x: 1, y: self.classes.weights(&self.train), x_is_local: false }
    }

    fn check(&self) -> Result<(), Mismatch> {
        self.classes.check(&self.train, &self.validation)
    }

    fn oracle_words(&self) -> usize {
        self.classes.0
    }

    fn upper_value(&self, _: &[S], y: &[S], scratch: &mut [S]) -> S {
        self.classes.mean_loss(y, &self.validation, scratch)
    }

    fn lower_value(&self, x: &[S], y: &[S], scratch: &mut [S]) -> S {
        self.classes.mean_loss(y, &self.train, scratch) + x[0] * squared_norm(y)
    }

    fn upper_gradient(&self, _: &[S], y: &[S], dx: &mut [S], dy: &mut [S], scratch: &mut [S]) {
        dx.fill(S::ZERO);
        self.classes.mean_gradient(y, &self.validation, dy, scratch);
    }

    fn lower_gradient(&self, _: NoiseKey, x: &[S], y: &[S], dx: &mut [S], dy: &mut [S], scratch: &mut [S]) {
        dx[0] = squared_norm(y);
        self.classes.mean_gradient(y, &self.train, dy, scratch);
        axpy(x[0] + x[0], y, dy);
    }

    fn project(&self, x: &mut [S]) {
        // NaN stays NaN.
        if x[0].is_finite() {
            x[0] = x[0].larger(S::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projection_keeps_the_regulariser_non_negative() {
        let train = Samples { features: &[1.0], labels: &[0] };
        let problem = HyperTuning { train, validation: train, classes: Classes(2) };
        let mut x = [-0.5];
        problem.project(&mut x);
        assert_eq!(x, [0.0]);
        for broken in [f32::NAN, f32::NEG_INFINITY] {
            let mut x = [broken];
            problem.project(&mut x);
            assert!(!x[0].is_finite(), "a number that is none must not be taken for 0");
        }
    }
}
