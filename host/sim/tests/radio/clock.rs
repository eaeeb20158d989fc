//! An agent's clock.

use std::f64::consts::TAU;

/// How a clock differs from true time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClockError {
    /// Its reading when the simulation began.
    pub(crate) start_us: f64,
    /// Its constant error.
    pub(crate) ppm: f64,
    /// How far its error swings about that, as with the temperature.
    pub(crate) swing_ppm: f64,
    /// How long a swing takes.
    pub(crate) swing_s: f64,
    /// How long it shows the same time.
    pub(crate) tick_us: f64,
}

impl ClockError {
    /// Its reading at a true time, in whole ticks.
    pub(crate) fn local_us(&self, true_us: f64) -> u64 {
        (libm::floor(self.exact(true_us) / self.tick_us) * self.tick_us) as u64
    }

    /// The true time at which it first shows `local_us` or more.
    pub(crate) fn true_us(&self, local_us: u64) -> f64 {
        let wanted = libm::ceil(local_us as f64 / self.tick_us) * self.tick_us;
        let mut true_us = wanted - self.start_us;
        // It runs at almost the right speed, so that each step leaves a ten-thousandth of the error.
        for _ in 0..4 {
            true_us += wanted - self.exact(true_us);
        }
        true_us
    }

    fn exact(&self, true_us: f64) -> f64 {
        // The integral of ppm + swing · sin.
        let turn = TAU / (self.swing_s * 1e6);
        let swing = self.swing_ppm * (1.0 - libm::cos(turn * true_us)) / turn;
        self.start_us + true_us + 1e-6 * (self.ppm * true_us + swing)
    }
}
