//! Where agents are, and how well they hear each other.

use nalgebra::Vector2;
use std::f64::consts::TAU;

/// Groups on a line: agent i is in group i modulo their number, and circles in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Places {
    pub(crate) groups: usize,
    pub(crate) spacing_m: f64,
    pub(crate) radius_m: f64,
    pub(crate) speed_m_s: f64,
}

/// All agents of a small room, in reach of each other.
pub(crate) const BENCH: Places = Places { groups: 1, spacing_m: 0.0, radius_m: 15.0, speed_m_s: 0.0 };

impl Places {
    /// Where `agent` of `agents` is.
    pub(crate) fn position(&self, agent: usize, agents: usize, seconds: f64) -> Vector2<f64> {
        let middle = Vector2::new(self.spacing_m * (agent % self.groups) as f64, 0.0);
        // Each at its own pace, so that agents of two groups meet in all constellations.
        let pace = 1.0 + 0.05 * (agent % 7) as f64;
        let start = TAU * (agent * self.groups) as f64 / agents as f64;
        let angle = start + pace * self.speed_m_s * seconds / self.radius_m;
        middle + self.radius_m * Vector2::new(libm::cos(angle), libm::sin(angle))
    }
}

/// Speed of light, in m/µs.
const LIGHT_M_US: f64 = 299.792_458;

/// The effect of a path on a signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RadioPath {
    pub(crate) signal_dbm: f64,
    pub(crate) delay_us: f64,
}

impl RadioPath {
    /// The path between two places, from a transmitter of `power_dbm`: 40 dB at 1 m, 27 dB per decade.
    pub(crate) fn between(from: Vector2<f64>, to: Vector2<f64>, power_dbm: f64) -> Self {
        let distance = (to - from).norm().max(1.0);
        Self { signal_dbm: power_dbm - 40.0 - 27.0 * libm::log10(distance), delay_us: distance / LIGHT_M_US }
    }
}
