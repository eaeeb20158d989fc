//! Where agents are, and how well they hear each other.

use nalgebra::Vector2;
use std::f64::consts::TAU;

/// Where agents are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Places {
    /// On a circle, all in reach of each other.
    Bench { radius_m: f64 },
    /// In groups on a line, agent i in group i modulo their number, circling in it.
    Groups { count: usize, spacing_m: f64, radius_m: f64, speed_m_s: f64 },
}

/// All agents of a small room.
pub(crate) const BENCH: Places = Places::Bench { radius_m: 15.0 };

impl Places {
    /// Where `agent` of `agents` is.
    pub(crate) fn position(&self, agent: usize, agents: usize, seconds: f64) -> Vector2<f64> {
        let circle =
            |share: f64, radius: f64| radius * Vector2::new(libm::cos(TAU * share), libm::sin(TAU * share));
        let share = agent as f64 / agents as f64;
        match *self {
            Self::Bench { radius_m } => circle(share, radius_m),
            Self::Groups { count, spacing_m, radius_m, speed_m_s } => {
                let middle = Vector2::new(spacing_m * (agent % count) as f64, 0.0);
                // Each at its own pace, so that agents of two groups meet in all constellations.
                let pace = 1.0 + 0.05 * (agent % 7) as f64;
                middle + circle(share * 3.0 + pace * speed_m_s * seconds / (TAU * radius_m), radius_m)
            }
        }
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
