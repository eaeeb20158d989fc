//! How far σ is from what receivers may hold of it.

use super::EPOCH;

/// The shortest window, in rounds, once that many were sent; the longest is about twice as long.
///
/// It should be longer than most outages of a link; 16 bits leave room for that.
pub(super) const GENERATION: u32 = 480;

/// Rounds per unit of the window field on the wire.
pub(super) const WINDOW_UNIT: u32 = 4;

/// The largest difference that 16 bits can represent, in either direction.
const COUNTABLE: u64 = 1 << 15;

/// The coarsest useful granularity: all upper bits of σ are sent then.
const COARSEST: u8 = 16;

/// The least and greatest past σ, relative to the present one.
#[derive(Clone, Copy, Debug)]
struct SigmaReach {
    behind: i32,
    ahead: i32,
}

impl SigmaReach {
    const NONE: Self = Self { behind: 0, ahead: 0 };

    /// The reach after σ moved by `share`. Saturated values are too large to be counted in any case.
    fn after(self, share: i32) -> Self {
        Self {
            behind: self.behind.saturating_sub(share).min(0),
            ahead: self.ahead.saturating_sub(share).max(0),
        }
    }

    fn largest(self) -> u32 {
        self.behind.unsigned_abs().max(self.ahead.unsigned_abs())
    }
}

/// The rounds from `start` until now.
#[derive(Clone, Debug)]
struct SigmaSpan<const WORDS: usize> {
    start: u32,
    /// Whether this is all since the epoch began, with σ = 0.
    is_whole: bool,
    /// Low bits that are zero in all shares since.
    zeros: u8,
    reaches: [SigmaReach; WORDS],
}

impl<const WORDS: usize> SigmaSpan<WORDS> {
    fn new(start: u32) -> Self {
        Self { start, is_whole: false, zeros: COARSEST, reaches: [SigmaReach::NONE; WORDS] }
    }

    fn add(&mut self, before: &[i32], sigma: &[i32]) {
        for ((reach, &before), &sigma) in self.reaches.iter_mut().zip(before).zip(sigma) {
            let share = sigma.wrapping_sub(before);
            self.zeros = self.zeros.min(share.trailing_zeros() as u8);
            *reach = reach.after(share);
        }
    }

    fn granularity(&self, before: &[i32], sigma: &[i32]) -> Option<u8> {
        let mut zeros = u32::from(self.zeros);
        let mut moved = 0;
        for ((reach, &before), &sigma) in self.reaches.iter().zip(before).zip(sigma) {
            let share = sigma.wrapping_sub(before);
            zeros = zeros.min(share.trailing_zeros());
            moved = moved.max(reach.after(share).largest());
        }
        (u64::from(moved >> zeros) < COUNTABLE).then_some(zeros as u8)
    }
}

/// How σ changed recently, in two spans like [`DecisionHistory`](super::decision_history::DecisionHistory).
#[derive(Clone, Debug)]
pub(super) struct SigmaHistory<const WORDS: usize> {
    old: SigmaSpan<WORDS>,
    young: SigmaSpan<WORDS>,
    /// σ of the last round.
    sigma: [i32; WORDS],
}

impl<const WORDS: usize> SigmaHistory<WORDS> {
    /// Begins with the payload of `round`, the first of an epoch if `is_whole`.
    pub(super) fn new(round: u32, is_whole: bool, sigma: &[i32]) -> Self {
        let mut young = SigmaSpan::new(round);
        if is_whole {
            young.is_whole = true;
            young.add(&[0; WORDS], sigma);
        }
        let mut history = Self { old: young.clone(), young, sigma: [0; WORDS] };
        history.remember(sigma);
        history
    }

    /// Adds the payload of a later round.
    pub(super) fn add(&mut self, round: u32, sigma: &[i32]) {
        for span in [&mut self.old, &mut self.young] {
            span.add(&self.sigma, sigma);
        }
        self.remember(sigma);
        if round - self.young.start >= GENERATION {
            self.old = core::mem::replace(&mut self.young, SigmaSpan::new(round));
        }
    }

    fn remember(&mut self, sigma: &[i32]) {
        for (held, &sigma) in self.sigma.iter_mut().zip(sigma) {
            *held = sigma;
        }
    }

    /// The age that a receiver's ρ may have: in units of rounds, or [`EPOCH`].
    pub(super) fn window(&self, round: u32) -> u8 {
        let units = (round - self.old.start) / WINDOW_UNIT;
        if self.old.is_whole { EPOCH } else { units.min(u32::from(EPOCH) - 1) as u8 }
    }

    /// The lowest bit from which 16 bits of σ are unambiguous to every receiver within the window, if there is one.
    pub(super) fn granularity(&self, sigma: &[i32]) -> Option<u8> {
        self.old.granularity(&self.sigma, sigma)
    }

    /// The granularity for shares up to `largest` that keeps σ representable unless shares grow fourfold.
    pub(super) fn advice(&self, largest: u32) -> u8 {
        let moved = self.old.reaches.iter().map(|reach| reach.largest()).max();
        advice(moved.unwrap_or(0), largest)
    }
}

/// The smallest g for which `moved`, and a generation of shares that may grow, fit 16 bits as multiples of 2^g.
pub(super) fn advice(moved: u32, largest: u32) -> u8 {
    let ahead = 4 * u64::from(largest) * u64::from(GENERATION) + u64::from(moved);
    // With a carry, all rounds together give less than one multiple more.
    (0..COARSEST).find(|g| (ahead >> g) + 2 < COUNTABLE).unwrap_or(COARSEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_advised_granularity_are_always_sent() {
        for first in [0, 1, 7, 8, 1000, 123_456, 500_000_u32] {
            let (mut sigma, mut carry) = (0_i32, 0_i64);
            let mut history = SigmaHistory::<1>::new(0, true, &[0]);
            for round in 1..5000 {
                // Shares that fall to nothing, with a ripple.
                let largest = (u64::from(first) * 500 / (500 + u64::from(round))) as u32 / (1 + round % 3);
                let g = history.advice(largest);
                carry += i64::from(largest);
                let share = carry >> g << g;
                carry -= share;
                sigma = sigma.wrapping_add(share as i32);
                assert!(history.granularity(&[sigma]).is_some(), "{first} {round} {g}");
                history.add(round, &[sigma]);
            }
        }
    }

    #[test]
    fn granularity_follows_the_largest_change_in_the_window() {
        let mut history = SigmaHistory::<1>::new(7, false, &[5]);
        assert_eq!(history.granularity(&[5 + 0x8001]), None);
        assert_eq!(history.granularity(&[5 + 0x8000]), Some(15));
        history.add(8, &[5]);
        assert_eq!(history.granularity(&[5]), Some(COARSEST));
        history.add(9, &[5 + 0x7FFF]);
        assert_eq!(history.granularity(&[5 + 0x8000]), None);
        assert_eq!(history.granularity(&[5]), Some(0));
    }

    #[test]
    fn advice_is_the_finest_that_fits_sixteen_bits() {
        // 4 · 480 for each share of 1, and one bit of 16 for the sign.
        for (moved, largest, g) in [
            (0, 0, 0),
            (32_765, 0, 0),
            (32_766, 0, 1),
            (0, 17, 0),
            (125, 17, 0),
            (126, 17, 1),
            (0, 18, 1),
            (u32::MAX, u32::MAX, COARSEST),
        ] {
            assert_eq!(advice(moved, largest), g, "{moved} {largest}");
        }
    }

    #[test]
    fn a_window_is_as_old_as_the_older_of_two_generations() {
        let mut history = SigmaHistory::<1>::new(100, false, &[0]);
        assert_eq!([100, 103, 104, 111].map(|round| history.window(round)), [0, 0, 1, 2]);
        assert_eq!(history.window(100 + 4 * 253), 253);
        assert_eq!(history.window(100 + 4 * 300), 254, "255 stands for the whole epoch");
        for round in 101..=100 + 2 * GENERATION {
            history.add(round, &[0]);
        }
        assert_eq!(history.window(100 + 2 * GENERATION), (GENERATION / WINDOW_UNIT) as u8);
        assert_eq!(SigmaHistory::<1>::new(0, true, &[0]).window(9), EPOCH);
    }
}
