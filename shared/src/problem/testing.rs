//! Data and problems for tests.

use super::*;
use crate::rng::{Purpose, Stream};

/// The same numbers for a name, between −1 and 1.
pub(crate) fn random<S: Scalar, const LENGTH: usize>(name: u32) -> [S; LENGTH] {
    let mut stream = Stream::new(42, name, 0, Purpose::Problem);
    core::array::from_fn(|_| S::from_f64(2.0 * stream.uniform_f64() - 1.0))
}

/// A problem of each kind.
pub(crate) fn examples<S: Scalar>(numbers: &[S; 30]) -> [AnyProblem<'_, S>; 4] {
    let [upper_weight, lower_weight, regularisation] = [0.7, 1.3, 0.05].map(S::from_f64);
    let train = Samples { features: &numbers[..15], labels: &[0, 1, 2, 1, 0] };
    let validation = Samples { features: &numbers[15..24], labels: &[2, 1, 0] };
    let readings = Readings { basis: &numbers[..15], values: &numbers[15..20] };
    let calibrated = Readings { basis: &numbers[20..26], values: &numbers[26..28] };
    let (classes, sensor_of) = (Classes(3), &[0, 1, 0, 1, 1]);
    [
        AnyProblem::PolicyEvaluation(PolicyEvaluation {
            upper_weight,
            lower_weight,
            regularisation,
            ..PolicyEvaluation::new(&numbers[..12], &numbers[12..24], &numbers[24..])
        }),
        AnyProblem::HyperTuning(HyperTuning { train, validation, classes }),
        AnyProblem::HyperCleaning(HyperCleaning { train, validation, classes, regularisation }),
        AnyProblem::SensorTrust(SensorTrust { readings, sensor_of, sensors: 2, calibrated, regularisation }),
    ]
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
