//! Sensor trust: a flying swarm maps a field while some of its sensors lie.
//!
//! Each agent carries a few sensors and reads a field (temperature, gas, radiation) on its way. The field
//! is modelled as `⟨φ(position), θ⟩` with coefficients θ that the whole swarm shares. A faulty sensor is
//! biased in all of its readings, so trust is learned per sensor, from a few calibrated readings:
//!
//! $$f_i(u, \theta) = \tfrac{1}{C}\sum_c \tfrac12(\phi_c^\top\theta - b_c)^2,\qquad
//!   g_i(u, \theta) = \tfrac{1}{K}\sum_k \sigma(u_{s(k)})\,\tfrac12(\phi_k^\top\theta - b_k)^2
//!     + \tfrac{\tau}{2}\lVert\theta\rVert^2$$
//!
//! u belongs to this agent's own sensors and never travels.

use super::{Mismatch, NoiseKey, Problem, Shape};
use crate::linear::{axpy, dot, squared_norm};
use crate::scalar::Scalar;

/// Readings of the field.
#[derive(Clone, Copy, Debug)]
pub struct Readings<'a, S> {
    /// φ at the place of each reading: readings × features, row-major, so that the φ of a reading is contiguous.
    pub basis: &'a [S],
    /// b, the value of each reading.
    pub values: &'a [S],
}

impl<S: Scalar> Readings<'_, S> {
    /// Calls `visit(reading, φ, φᵀθ − b)` for each reading.
    fn for_each(&self, theta: &[S], mut visit: impl FnMut(usize, &[S], S)) {
        let rows = self.basis.chunks_exact(theta.len().max(1)).zip(self.values);
        for (reading, (basis, &value)) in rows.enumerate() {
            visit(reading, basis, dot(basis, theta) - value);
        }
    }

    fn share(&self) -> S {
        S::ONE / S::from_f64(self.values.len().max(1) as f64)
    }
}

/// One agent's sensor-trust problem.
#[derive(Clone, Copy, Debug)]
pub struct SensorTrust<'a, S> {
    /// Readings of the agent's own sensors.
    pub readings: Readings<'a, S>,
    /// The sensor of each reading, below [`SensorTrust::sensors`].
    pub sensor_of: &'a [u8],
    /// How many sensors the agent carries.
    pub sensors: usize,
    /// Readings that are known to be right.
    pub calibrated: Readings<'a, S>,
    /// τ.
    pub regularisation: S,
}

impl<S: Scalar> Problem<S> for SensorTrust<'_, S> {
    fn shape(&self) -> Shape {
        Shape {
            x: self.sensors,
            y: self.readings.basis.len() / self.readings.values.len().max(1),
            x_is_local: true,
        }
    }

    fn check(&self) -> Result<(), Mismatch> {
        if self.readings.values.is_empty() || self.readings.basis.is_empty() || self.sensors == 0 {
            return Err(Mismatch::Empty);
        }
        let basis = self.shape().y;
        let fits = |readings: &Readings<'_, S>| readings.basis.len() == basis * readings.values.len();
        if !fits(&self.readings)
            || !fits(&self.calibrated)
            || self.sensor_of.len() != self.readings.values.len()
        {
            return Err(Mismatch::Length);
        }
        if self.sensor_of.iter().any(|&sensor| usize::from(sensor) >= self.sensors) {
            return Err(Mismatch::Index);
        }
        Ok(())
    }

    fn oracle_words(&self) -> usize {
        0
    }

    fn upper_value(&self, _: &[S], y: &[S], _: &mut [S]) -> S {
        let mut total = S::ZERO;
        self.calibrated.for_each(y, |_, _, miss| total += miss * miss);
        S::from_f64(0.5) * self.calibrated.share() * total
    }

    fn lower_value(&self, x: &[S], y: &[S], _: &mut [S]) -> S {
        let mut total = S::ZERO;
        self.readings.for_each(y, |reading, _, miss| {
            total += x[usize::from(self.sensor_of[reading])].sigmoid() * miss * miss;
        });
        S::from_f64(0.5) * (self.readings.share() * total + self.regularisation * squared_norm(y))
    }

    fn upper_gradient(&self, _: &[S], y: &[S], dx: &mut [S], dy: &mut [S], _: &mut [S]) {
        dx.fill(S::ZERO);
        dy.fill(S::ZERO);
        let share = self.calibrated.share();
        self.calibrated.for_each(y, |_, basis, miss| axpy(share * miss, basis, dy));
    }

    fn lower_gradient(&self, _: NoiseKey, x: &[S], y: &[S], dx: &mut [S], dy: &mut [S], _: &mut [S]) {
        dx.fill(S::ZERO);
        dy.fill(S::ZERO);
        let share = self.readings.share();
        let half = S::from_f64(0.5);
        self.readings.for_each(y, |reading, basis, miss| {
            let sensor = usize::from(self.sensor_of[reading]);
            let trust = x[sensor].sigmoid();
            dx[sensor] += share * trust * (S::ONE - trust) * half * miss * miss;
            axpy(share * trust * miss, basis, dy);
        });
        axpy(self.regularisation, y, dy);
    }
}
