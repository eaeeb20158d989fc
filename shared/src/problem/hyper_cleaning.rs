//! Data hyper-cleaning: which of my training samples carry a wrong label?
//!
//! $$f_i(\psi, w) = \ell(w; D_{val}),\qquad
//!   g_i(\psi, w) = \tfrac{1}{|D_{tr}|}\sum_j \sigma(\psi_j)\,\ell_j(w) + \tfrac{\tau}{2}\lVert w\rVert^2$$
//!
//! (the paper's eq. (19)). ψ_j belongs to one sample of one agent and never leaves it.

use super::softmax::{Classes, Samples};
use super::{Mismatch, NoiseKey, Problem, Shape};
use crate::linear::{axpy, squared_norm};
use crate::scalar::Scalar;

/// One agent's hyper-cleaning problem.
#[derive(Clone, Copy, Debug)]
pub struct HyperCleaning<'a, S> {
    /// Samples to be cleaned, one ψ each.
    pub train: Samples<'a, S>,
    /// Samples known to be clean.
    pub validation: Samples<'a, S>,
    /// How many classes there are.
    pub classes: Classes,
    /// τ.
    pub regularisation: S,
}

impl<S: Scalar> HyperCleaning<'_, S> {
    fn share(&self) -> S {
        S::ONE / S::from_f64(self.train.len().max(1) as f64)
    }
}

impl<S: Scalar> Problem<S> for HyperCleaning<'_, S> {
    fn shape(&self) -> Shape {
        Shape { x: self.train.len(), y: self.classes.weights(&self.train), x_is_local: true }
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
        let mut total = S::ZERO;
        self.classes.losses(y, &self.train, scratch, |sample, loss| total += x[sample].sigmoid() * loss);
        total * self.share() + S::from_f64(0.5) * self.regularisation * squared_norm(y)
    }

    fn upper_gradient(&self, _: &[S], y: &[S], dx: &mut [S], dy: &mut [S], scratch: &mut [S]) {
        dx.fill(S::ZERO);
        self.classes.mean_gradient(y, &self.validation, dy, scratch);
    }

    fn lower_gradient(&self, _: NoiseKey, x: &[S], y: &[S], dx: &mut [S], dy: &mut [S], scratch: &mut [S]) {
        let share = self.share();
        dy.fill(S::ZERO);
        self.classes.accumulate(y, &self.train, dy, scratch, |sample, loss| {
            let weight = x[sample].sigmoid();
            dx[sample] = share * weight * (S::ONE - weight) * loss;
            share * weight
        });
        axpy(self.regularisation, y, dy);
    }
}
