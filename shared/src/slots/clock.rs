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
    pub(super) superframes: i64,
    /// How much later than expected, in 2^−10 µs.
    error: i64,
}

impl Sample {
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
        let at = self.start.saturating_add(self.local(fine(offset_us)));
        // Rounded, so that no bias adds up over hops.
        u64::try_from(at.saturating_add(1 << (FRACTION - 1)) >> FRACTION).unwrap_or(0)
    }

    /// Goes to the next superframe.
    pub(super) fn advance(&mut self) {
        self.start = self.start.saturating_add(self.local(self.length));
    }

    /// Compares what happened at `local_us`, and at `offset_us` into some superframe, with the estimate.
    pub(super) fn compare(&self, local_us: u64, offset_us: u64) -> Sample {
        let late = fine(local_us).saturating_sub(self.start).saturating_sub(self.local(fine(offset_us)));
        let length = self.local(self.length).max(1);
        let superframes = late.saturating_add(length / 2).div_euclid(length);
        Sample { superframes, error: late.saturating_sub(superframes.saturating_mul(length)) }
    }

    /// Follows a sample: half of its error at once, and a part of it as a drift since the last one.
    pub(super) fn correct(&mut self, local_us: u64, sample: Sample) {
        self.start = self.start.saturating_add(sample.error / 2);
        let elapsed = fine(local_us.saturating_sub(self.corrected_us)).max(self.length);
        // An error within reach is far below 2^31, so that the shift loses nothing.
        let error = sample.error.clamp(-(1 << 30), 1 << 30);
        let drift = (error << RATE_BITS) / elapsed;
        // The first samples tell most of the drift; later ones average their jitter.
        let share = match self.corrections {
            0..4 => 2,
            4..16 => 4,
            _ => 8,
        };
        self.rate = (self.rate + drift / share).clamp(-LARGEST_RATE, LARGEST_RATE);
        self.corrected_us = local_us;
        self.corrections = self.corrections.saturating_add(1);
    }

    /// Takes a superframe that begins `offset_us` before `local_us` as the present one, and forgets the drift.
    pub(super) fn jump(&mut self, local_us: u64, offset_us: u64) {
        self.rate = 0;
        self.start = fine(local_us).saturating_sub(fine(offset_us));
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

    /// How fast this clock runs against the root's, in parts per billion.
    pub(super) fn rate_ppb(&self) -> i32 {
        // Within ±244,141.
        ((self.rate * 1_000_000_000) >> RATE_BITS) as i32
    }
}

/// Microseconds in 2^−10 µs; times beyond 285 years stand still.
fn fine(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX).min(i64::MAX >> FRACTION) << FRACTION
}
