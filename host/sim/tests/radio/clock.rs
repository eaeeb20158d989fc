//! An agent's clock.

use std::f64::consts::TAU;

/// How a clock differs from true time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClockError {
    /// What it showed when the simulation began.
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
    /// What it shows at a true time, in whole ticks.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn true_times_come_back() {
        let clock = ClockError { start_us: 5e6, ppm: -40.0, swing_ppm: 10.0, swing_s: 60.0, tick_us: 1.0 };
        for local_us in [5_000_000, 6_000_001, 4_000_000_000] {
            let true_us = clock.true_us(local_us);
            assert!((clock.exact(true_us) - local_us as f64).abs() < 1e-3);
        }
        let coarse = ClockError { tick_us: 1e6 / 32_768.0, ..clock };
        let late = coarse.exact(coarse.true_us(6_000_001)) - 6_000_001.0;
        assert!((0.0..31.0).contains(&late), "{late} µs");
        assert!(coarse.local_us(1e6).abs_diff(clock.local_us(1e6)) <= 31);
        // 100 s at −40 ppm are 4 ms, and a whole number of swings and a part of one at most 200 µs more.
        let lost = 5e6 + 100e6 - clock.exact(100e6);
        assert!((3.8e3..4.0e3).contains(&lost), "{lost} µs");
    }
}
