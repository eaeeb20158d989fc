//! The conformance suite, the same for every device and precision.
//!
//! `shared` compares a batched swarm with the functions one small agent is made of, `faulty_air` with whole small agents over
//! the same air, and `push_sum` with the equations of methods that have such weights. `devices` compares each program and each
//! way of mixing with the CPU in f64. Tests run the suite on the CPU; `bench large` runs it on a GPU before it times anything.

mod devices;
mod faulty_air;
mod push_sum;
mod samples;
mod shared;

pub use devices::{gradients, mixing};
pub use faulty_air::follows_agents;
pub use push_sum::follows_push_sum;
pub use shared::follows_shared;

use crate::device::Device;
use fabswarm_shared::scalar::Scalar;

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The compared quantity.
    pub what: String,
    /// Largest difference, relative to the norm of the reference.
    pub error: f64,
    /// Largest difference that passes.
    pub tolerance: f64,
}

impl Check {
    /// Whether the difference is within the tolerance.
    pub fn passed(&self) -> bool {
        // A NaN passes nothing.
        self.error <= self.tolerance
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = if self.passed() { "ok" } else { "FAILED" };
        write!(f, "{verdict:<6} {:<44} error {:.1e} (at most {:.0e})", self.what, self.error, self.tolerance)
    }
}

/// Numbers in the precision of a device.
fn narrow<D: Device>(words: impl IntoIterator<Item = f64>) -> Vec<D::Scalar> {
    words.into_iter().map(D::Scalar::from_f64).collect()
}

/// Numbers of a device in double precision.
fn wide<S: Scalar>(words: Vec<S>) -> Vec<f64> {
    words.into_iter().map(Scalar::to_f64).collect()
}

/// `‖a − b‖ / ‖b‖`.
fn distance(a: impl IntoIterator<Item = f64>, b: impl IntoIterator<Item = f64>) -> f64 {
    let (mut gap, mut size) = (0.0, 0.0);
    for (a, b) in a.into_iter().zip(b) {
        gap += (a - b) * (a - b);
        size += b * b;
    }
    if size > 0.0 { (gap / size).sqrt() } else { gap.sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::Cpu;

    fn all_pass(checks: Vec<Check>) {
        assert!(!checks.is_empty());
        for check in checks {
            assert!(check.passed(), "{check}");
        }
    }

    #[test]
    fn cpu_follows_shared() {
        all_pass(follows_shared(|| Ok(Cpu::<f64>::new()), 1e-9).unwrap());
        all_pass(follows_shared(|| Ok(Cpu::<f32>::new()), 2e-4).unwrap());
    }

    #[test]
    fn cpu_follows_push_sum() {
        all_pass(follows_push_sum(|| Ok(Cpu::<f64>::new()), 1e-12).unwrap());
        all_pass(follows_push_sum(|| Ok(Cpu::<f32>::new()), 1e-5).unwrap());
    }

    #[test]
    fn cpu_follows_agents_over_a_faulty_air() {
        all_pass(vec![
            follows_agents(Cpu::<f32>::new()).unwrap(),
            follows_agents(Cpu::<f64>::new()).unwrap(),
        ]);
    }

    #[test]
    fn f32_gradients_are_those_of_f64() {
        all_pass(gradients(&Cpu::<f32>::new(), 1e-4).unwrap());
    }

    #[test]
    fn f32_mixing_is_that_of_f64() {
        all_pass(mixing(&Cpu::<f32>::new(), 1e-5).unwrap());
    }
}
