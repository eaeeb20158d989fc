//! What every problem's tests share: random numbers and finite differences.

extern crate std;
use super::{Mismatch, Moment, Penalty, Problem, Shape};
use crate::rng::{Purpose, Stream};
use std::vec;
use std::vec::Vec;

pub(super) fn random(name: u32, len: usize) -> Vec<f64> {
    let mut stream = Stream::new(42, name, 0, Purpose::Problem);
    (0..len).map(|_| 2.0 * stream.uniform_f64() - 1.0).collect()
}

/// A problem seen only through its oracles, so that the trait's own composition is what runs.
struct OraclesOnly<'p, P>(&'p P);

impl<P: Problem<f64>> Problem<f64> for OraclesOnly<'_, P> {
    fn shape(&self) -> Shape {
        self.0.shape()
    }
    fn check(&self) -> Result<(), Mismatch> {
        self.0.check()
    }
    fn oracle_words(&self) -> usize {
        self.0.oracle_words()
    }
    fn upper_value(&self, x: &[f64], y: &[f64], scratch: &mut [f64]) -> f64 {
        self.0.upper_value(x, y, scratch)
    }
    fn lower_value(&self, x: &[f64], y: &[f64], scratch: &mut [f64]) -> f64 {
        self.0.lower_value(x, y, scratch)
    }
    fn upper_gradient(&self, x: &[f64], y: &[f64], dx: &mut [f64], dy: &mut [f64], scratch: &mut [f64]) {
        self.0.upper_gradient(x, y, dx, dy, scratch);
    }
    fn lower_gradient(
        &self,
        at: Moment,
        x: &[f64],
        y: &[f64],
        dx: &mut [f64],
        dy: &mut [f64],
        scratch: &mut [f64],
    ) {
        self.0.lower_gradient(at, x, y, dx, dy, scratch);
    }
}

pub(super) fn default_penalty_gradient(
    problem: &impl Problem<f64>,
    penalty: &Penalty<f64>,
    at: Moment,
    v: &[f64],
) -> Vec<f64> {
    let plain = OraclesOnly(problem);
    let mut d = vec![0.0; v.len()];
    let mut scratch = vec![0.0; plain.scratch_words()];
    plain.penalty_gradient(penalty, at, v, &mut d, &mut scratch);
    d
}

/// Checks ∇f, ∇g and the penalty gradient against central differences of the values.
pub(super) fn check_gradients(problem: &impl Problem<f64>) {
    assert_eq!(problem.check(), Ok(()));
    let shape = problem.shape();
    let at = Moment { agent: 0, round: 0 };
    let v = random(99, shape.words());
    let mut scratch = vec![0.0; problem.scratch_words()];

    let mut d = vec![0.0; shape.words()];
    let penalty = Penalty { lambda: 3.0, normalise: true };
    problem.penalty_gradient(&penalty, at, &v, &mut d, &mut scratch);
    let upper = |v: &[f64], scratch: &mut [f64]| {
        let (x, y, _) = shape.split(v);
        problem.upper_value(x, y, scratch)
    };
    let lower = |v: &[f64], of_z: bool, scratch: &mut [f64]| {
        let (x, y, z) = shape.split(v);
        problem.lower_value(x, if of_z { z } else { y }, scratch)
    };
    // z ascends: its part of d is minus the derivative of L.
    let lagrangian = |v: &[f64], scratch: &mut [f64]| {
        upper(v, scratch) / 3.0 + lower(v, false, scratch) - lower(v, true, scratch)
    };
    let h = 1e-5;
    for word in 0..shape.words() {
        let (mut plus, mut minus) = (v.clone(), v.clone());
        plus[word] += h;
        minus[word] -= h;
        let slope = (lagrangian(&plus, &mut scratch) - lagrangian(&minus, &mut scratch)) / (2.0 * h);
        let expected = if word < shape.x + shape.y { slope } else { -slope };
        assert!(
            (d[word] - expected).abs() < 1e-7 * expected.abs().max(1.0),
            "word {word}: {} against {expected} by finite differences",
            d[word]
        );
    }

    let (x, y, _) = shape.split(&v);
    let (mut dx, mut dy) = (vec![0.0; shape.x], vec![0.0; shape.y]);
    problem.upper_gradient(x, y, &mut dx, &mut dy, &mut scratch);
    let of_f: Vec<f64> = dx.iter().chain(&dy).copied().collect();
    problem.lower_gradient(at, x, y, &mut dx, &mut dy, &mut scratch);
    let of_g: Vec<f64> = dx.iter().chain(&dy).copied().collect();
    for word in 0..shape.x + shape.y {
        let (mut plus, mut minus) = (v.clone(), v.clone());
        plus[word] += h;
        minus[word] -= h;
        let f = (upper(&plus, &mut scratch) - upper(&minus, &mut scratch)) / (2.0 * h);
        let g = (lower(&plus, false, &mut scratch) - lower(&minus, false, &mut scratch)) / (2.0 * h);
        assert!((of_f[word] - f).abs() < 1e-7 * f.abs().max(1.0), "∇f word {word}");
        assert!((of_g[word] - g).abs() < 1e-7 * g.abs().max(1.0), "∇g word {word}");
    }
}
