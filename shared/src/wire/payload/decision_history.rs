//! The range in which receivers may have seen each word of v.

/// The shortest window, in rounds, once that many were sent; the longest is about twice as long.
///
/// A longer window keeps more receivers whose link was down, at the price of a coarser unit for v.
pub(super) const GENERATION: u32 = 48;

/// The least and greatest v that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecisionRange {
    low: f32,
    high: f32,
}

impl DecisionRange {
    /// The largest distance between `v` and anything that was sent.
    pub(super) fn reach(&self, v: f32) -> f32 {
        (v - self.low).max(self.high - v)
    }
}

/// The range of what was sent since `start`.
#[derive(Clone, Debug)]
struct DecisionSpan<const WORDS: usize> {
    start: u32,
    ranges: [DecisionRange; WORDS],
}

impl<const WORDS: usize> DecisionSpan<WORDS> {
    fn new(start: u32, v: &[f32; WORDS]) -> Self {
        Self { start, ranges: v.map(|v| DecisionRange { low: v, high: v }) }
    }
}

/// The range of what was sent recently.
///
/// Two overlapping spans, one of which always began at least [`GENERATION`] rounds ago. No list of past values is kept, and
/// a round costs a few operations per word.
#[derive(Clone, Debug)]
pub(super) struct DecisionHistory<const WORDS: usize> {
    old: DecisionSpan<WORDS>,
    young: DecisionSpan<WORDS>,
}

impl<const WORDS: usize> DecisionHistory<WORDS> {
    /// Begins with what is sent in `round`.
    pub(super) fn new(round: u32, v: &[f32; WORDS]) -> Self {
        Self { old: DecisionSpan::new(round, v), young: DecisionSpan::new(round, v) }
    }

    /// Adds what is sent in a later round.
    pub(super) fn add(&mut self, round: u32, v: &[f32; WORDS]) {
        for span in [&mut self.old, &mut self.young] {
            for (range, &v) in span.ranges.iter_mut().zip(v) {
                *range = DecisionRange { low: range.low.min(v), high: range.high.max(v) };
            }
        }
        if round - self.young.start >= GENERATION {
            self.old = core::mem::replace(&mut self.young, DecisionSpan::new(round, v));
        }
    }

    /// The range of each word within the [`window`](Self::window).
    pub(super) fn ranges(&self) -> &[DecisionRange; WORDS] {
        &self.old.ranges
    }

    /// The age in rounds that a receiver's v may have.
    pub(super) fn window(&self, round: u32) -> u8 {
        u8::try_from(round - self.old.start).unwrap_or(u8::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_covers_one_to_two_generations_and_the_range_all_of_it() {
        let mut history = DecisionHistory::<1>::new(1, &[1.0]);
        for round in 2..1000 {
            let window = u32::from(history.window(round));
            assert!((GENERATION.min(round - 1)..=2 * GENERATION).contains(&window), "{round} {window}");
            assert_eq!(history.ranges()[0].low, (round - window) as f32);
            assert_eq!(history.ranges()[0].reach(round as f32), window as f32);
            history.add(round, &[round as f32]);
        }
    }
}
