//! Random numbers and finite differences, shared by the tests of all problems.

extern crate std;
use super::{Mismatch, NoiseKey, Problem, Shape};
use crate::rng::{Purpose, Stream};
use crate::scalar::Scalar;
use std::vec::Vec;

pub(super) fn random(name: u32, len: usize) -> Vec<f64> {
    let mut stream = Stream::new(42, name, 0, Purpose::Problem);
    (0..len).map(|_| 2.0 * stream.uniform_f64() - 1.0).collect()
}

/// A problem seen only through its oracles, so that the trait's own composition is what runs.
#[derive(Debug)]
pub(crate) struct OraclesOnly<'p, P>(pub(crate) &'p P);

impl<S: Scalar, P: Problem<S>> Problem<S> for OraclesOnly<'_, P> {
    fn shape(&self) -> Shape {
        self.0.shape()
    }
    fn check(&self) -> Result<(), Mismatch> {
        self.0.check()
    }
    fn oracle_words(&self) -> usize {
        self.0.oracle_words()
    }
    fn upper_value(&self, x: &[S], y: &[S], scratch: &mut [S]) -> S {
        self.0.upper_value(x, y, scratch)
    }
    fn lower_value(&self, x: &[S], y: &[S], scratch: &mut [S]) -> S {
        self.0.lower_value(x, y, scratch)
    }
    fn upper_gradient(&self, x: &[S], y: &[S], dx: &mut [S], dy: &mut [S], scratch: &mut [S]) {
        self.0.upper_gradient(x, y, dx, dy, scratch);
    }
    fn lower_gradient(&self, at: NoiseKey, x: &[S], y: &[S], dx: &mut [S], dy: &mut [S], scratch: &mut [S]) {
        self.0.lower_gradient(at, x, y, dx, dy, scratch);
    }
}

/// Checks ∇f, ∇g and the penalty gradient against central differences of the values.
pub(super) fn check_gradients(problem: &impl Problem<f64>) {
    let v = random(99, problem.shape().words());
    super::check_gradients::<f64, 64>(problem, &v).unwrap();
}
