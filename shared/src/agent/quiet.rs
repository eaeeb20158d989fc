//! When an agent has too little to say for a data frame.

/// Rounds without a data frame, at most: others must be able to tell an agent with nothing to say from a dead one.
const LONGEST: u8 = 7;

/// The content of the last data frame.
#[derive(Clone, Debug)]
pub(super) struct Quiet<const WORDS: usize> {
    said: [f32; WORDS],
    /// Rounds since then; `LONGEST` where there was no frame.
    rounds: u8,
}

impl<const WORDS: usize> Quiet<WORDS> {
    pub(super) const fn new() -> Self {
        Self { said: [0.0; WORDS], rounds: LONGEST }
    }

    /// Whether `v` is worth a frame: a word has moved by more than `threshold` of one plus itself, or the last frame is long ago.
    pub(super) fn is_broken(&mut self, v: &[f32], threshold: f32) -> bool {
        let is_still = |(word, said): (&f32, &f32)| (word - said).abs() <= threshold * (1.0 + said.abs());
        let is_broken = self.rounds >= LONGEST || !v.iter().zip(&self.said).all(is_still);
        if is_broken {
            self.said[..v.len()].copy_from_slice(v);
            self.rounds = 0;
        } else {
            self.rounds += 1;
        }
        is_broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_speaks_when_it_has_moved_or_was_silent_for_long() {
        let mut quiet = Quiet::<2>::new();
        assert!(quiet.is_broken(&[1.0, -3.0], 0.1), "the first frame");
        assert!(!quiet.is_broken(&[1.19, -3.39], 0.1), "less than a tenth of one plus the word");
        assert!(quiet.is_broken(&[1.2, -3.41], 0.1));
        assert!((0..LONGEST).all(|_| !quiet.is_broken(&[1.2, -3.41], 0.1)));
        assert!(quiet.is_broken(&[1.2, -3.41], 0.1), "a sign of life");
        assert!(quiet.is_broken(&[f32::NAN, 0.0], 0.1), "a fault is not kept back");
    }
}
