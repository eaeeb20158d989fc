//! How far σ moved in the last rounds, and so how few bits of it tell the rest.

use super::Width;

/// Rounds remembered; no full frame is further apart.
const DEPTH: usize = 64;

/// How σ moved in one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Largest share, in magnitude.
    largest: u32,
    /// Low bits that are zero in all shares.
    zeros: u8,
}

impl Step {
    const NONE: Self = Self { largest: 0, zeros: 32 };

    pub(super) fn between(before: &[i32], now: &[i32]) -> Self {
        let mut largest = 0;
        let mut bits = 0;
        for (&before, &now) in before.iter().zip(now) {
            let share = now.wrapping_sub(before).unsigned_abs();
            largest = largest.max(share);
            bits |= share;
        }
        Self { largest, zeros: bits.trailing_zeros() as u8 }
    }
}

/// For whom the bits of σ in a frame are enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// ρ must be from within so many rounds; 0: enough for nobody.
    pub(super) rounds: u8,
    /// Lowest bit of σ that travels.
    pub(super) granularity: u8,
}

/// The steps of the last rounds.
#[derive(Clone, Debug)]
pub(super) struct Motion {
    steps: [Step; DEPTH],
    held: usize,
    newest: usize,
}

impl Motion {
    pub(super) const fn new() -> Self {
        Self { steps: [Step::NONE; DEPTH], held: 0, newest: 0 }
    }

    /// Adds the step of a round that came `rounds` after the last one added.
    pub(super) fn push(&mut self, step: Step, rounds: u32) {
        for _ in 1..rounds.min(DEPTH as u32) {
            self.push_one(Step::NONE);
        }
        self.push_one(step);
    }

    fn push_one(&mut self, step: Step) {
        self.newest = (self.newest + 1) % DEPTH;
        self.steps[self.newest] = step;
        self.held = (self.held + 1).min(DEPTH);
    }

    /// The longest window a frame of this `width` may claim, `rounds` after the last step added.
    pub(super) fn window(&self, width: Width, step: Step, rounds: u32) -> Window {
        let bits = width.sigma_bits();
        let longest = width.period() - 1;
        let countable = (1_u64 << (bits - 1)) - 1;
        // Where all upper bits travel, finer is as good.
        let mut window = Window { rounds: 0, granularity: (32 - bits) as u8 };
        let mut moved = 0;
        let mut granularity = window.granularity;
        let past = (0..self.held).map(|age| self.steps[(self.newest + DEPTH - age) % DEPTH]);
        for (length, step) in (rounds..).zip(core::iter::once(step).chain(past)) {
            moved += u64::from(step.largest);
            granularity = granularity.min(step.zeros);
            if length > longest || moved >> granularity > countable {
                break;
            }
            window = Window { rounds: length as u8, granularity };
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_advised_granularity_keep_the_window() {
        for largest in [0, 1, 7, 8, 1000, 123_456, 1 << 28] {
            for (width, rounds) in [(Width::Half, 63), (Width::Byte, 15), (Width::Byte, 8)] {
                let g = width.granularity(largest, rounds);
                let share = ((largest >> g) << g) as i32;
                let mut motion = Motion::new();
                let mut sigma = 0_i32;
                for _ in 1..rounds {
                    let before = sigma;
                    sigma = sigma.wrapping_add(share);
                    motion.push(Step::between(&[before], &[sigma]), 1);
                }
                let window = motion.window(width, Step::between(&[sigma], &[sigma.wrapping_add(share)]), 1);
                assert!(
                    u32::from(window.rounds) >= rounds || u32::from(g) + width.sigma_bits() == 32,
                    "{width:?} {largest} {window:?}"
                );
            }
        }
    }

    #[test]
    fn a_gap_counts_as_rounds() {
        let mut motion = Motion::new();
        motion.push(Step::between(&[0], &[4]), 1);
        let step = Step::between(&[4], &[8]);
        assert_eq!(motion.window(Width::Byte, step, 5), Window { rounds: 6, granularity: 2 });
        assert_eq!(motion.window(Width::Byte, step, 16).rounds, 0);
    }
}
