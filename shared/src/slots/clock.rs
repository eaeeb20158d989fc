//! An agent's estimate of when superframes begin.

/// Fractions of a microsecond that the estimate counts, in bits.
const FRACTION: u32 = 10;
/// The rate is a multiple of 2^−32.
const RATE_BITS: u32 = 32;
/// Clocks are never off by more than this share, 1/2^12 or 244 ppm.
const LARGEST_RATE: i64 = 1 << (RATE_BITS - 12);

/// The start of the present superframe in local time, and how fast the local clock runs against the root's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotClock {
    /// In 2^−10 µs.
    start: i64,
    /// Length of a superframe in the root's time, in 2^−10 µs.
    length: i64,
    /// Local time per time of the root, less 1, in 2^−32.
    rate: i64,
    /// When it was last corrected, in local µs.
    corrected_us: u64,
    /// Corrections since the last jump, as far as they matter.
    corrections: u8,
}

/// Where a sample lies against the estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// How many superframes after the present one.
    pub(super) superframes: i8,
    /// How much later than expected, in 2^−10 µs.
    error: i64,
}

impl Sample {
    /// The error as whole µs.
    pub(super) fn late_us(&self) -> i64 {
        self.error >> FRACTION
    }

    /// The error as whole µs, without its sign.
    pub(super) fn error_us(&self) -> u64 {
        self.error.unsigned_abs() >> FRACTION
    }
}

impl SlotClock {
    /// A clock whose first superframe begins at `start_us`.
    pub(super) fn new(start_us: u64, length_us: u64) -> Self {
        Self {
            start: fine(start_us),
            length: fine(length_us).max(1),
            rate: 0,
            corrected_us: start_us,
            corrections: 0,
        }
    }

    /// The local time at `offset_us` of the root's time into the superframe.
    pub(super) fn at_us(&self, offset_us: u64) -> u64 {
        let at = self.start.wrapping_add(self.local(fine(offset_us)));
        // Rounded, so that no bias adds up over hops.
        (at.wrapping_add(1 << (FRACTION - 1)) >> FRACTION) as u64
    }

    /// Goes to the next superframe.
    pub(super) fn advance(&mut self) {
        self.start = self.start.wrapping_add(self.local(self.length));
    }

    /// Compares what happened at `local_us`, and at `offset_us` into some superframe, with the estimate of this superframe, the
    /// one before or the one behind. The error is large if it was none of these.
    pub(super) fn compare(&self, local_us: u64, offset_us: u64) -> Sample {
        let late = fine(local_us).wrapping_sub(self.start).wrapping_sub(self.local(fine(offset_us)));
        let length = self.local(self.length);
        let superframes = if late > length / 2 {
            1
        } else if late < -length / 2 {
            -1
        } else {
            0
        };
        Sample { superframes, error: late.wrapping_sub(length * i64::from(superframes)) }
    }

    /// Follows a sample: half of its error at once, and a part of it as a drift since the last one.
    pub(super) fn correct(&mut self, local_us: u64, sample: Sample) {
        self.start = self.start.wrapping_add(sample.error / 2);
        let elapsed_us = local_us.wrapping_sub(self.corrected_us).max((self.length >> FRACTION) as u64);
        let drift = rate_of(sample.error, elapsed_us);
        // The first samples tell most of the drift; later ones average their jitter.
        let share = match self.corrections {
            0..4 => 1,
            4..16 => 2,
            _ => 3,
        };
        self.rate = (self.rate + (drift >> share)).clamp(-LARGEST_RATE, LARGEST_RATE);
        self.corrected_us = local_us;
        self.corrections = self.corrections.saturating_add(1);
    }

    /// Takes a superframe that begins `offset_us` before `local_us` as the present one, and forgets the drift.
    pub(super) fn jump(&mut self, local_us: u64, offset_us: u64) {
        self.rate = 0;
        self.start = fine(local_us).wrapping_sub(fine(offset_us));
        (self.corrected_us, self.corrections) = (local_us, 0);
    }

    /// Whether the drift is known well enough to do without news for a while.
    pub(super) const fn is_settled(&self) -> bool {
        self.corrections >= 8
    }

    /// A length of the root's time in local time.
    fn local(&self, length: i64) -> i64 {
        // At most 2^42 (an hour) times 2^20.
        length + ((length * self.rate) >> RATE_BITS)
    }
}

/// Microseconds in 2^−10 µs; the highest bits of times beyond 285 years are lost.
const fn fine(us: u64) -> i64 {
    (us << FRACTION) as i64
}

/// An error, in 2^−10 µs, over a time as a rate in 2^−32, to 12 bits: microcontrollers divide 32 bits, and 64 only by a long
/// function.
fn rate_of(error: i64, elapsed_us: u64) -> i64 {
    let error = error.clamp(-(1 << 30), 1 << 30) as i32;
    let elapsed_us = elapsed_us.clamp(1, u32::MAX.into()) as u32;
    let widen = error.unsigned_abs().leading_zeros().saturating_sub(1);
    let narrow = 17u32.saturating_sub(elapsed_us.leading_zeros());
    let quotient = i64::from((error << widen) / (elapsed_us >> narrow) as i32);
    // error · 2^widen / (elapsed / 2^narrow) is to become error · 2^(32 − FRACTION) / elapsed.
    let shift = (RATE_BITS - FRACTION) as i32 - widen as i32 - narrow as i32;
    if shift >= 0 { quotient << shift } else { quotient >> -shift }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rates_are_exact_to_12_bits(error in -(1i64 << 30)..(1 << 30), elapsed_us in 1u64..1 << 32) {
            let exact = (i128::from(error) << 22) / i128::from(elapsed_us);
            let rate = i128::from(rate_of(error, elapsed_us));
            prop_assert!((rate - exact).abs() <= exact.abs() / (1 << 12) + 1, "{rate} for {exact}");
        }
    }
}
