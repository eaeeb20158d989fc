//! Gathering and descending in turn, for graphs that mix slowly (not in the paper).
//!
//! On a directed ring of n agents pull and push turn the same way. With pull weight α, push weight 1 − κ and curvature h the
//! mode at the angle θ = 2π/n obeys $(z - a)(z - b) + \eta h (z - 1) = 0$ with $a = 1 - \alpha(1 - e^{-i\theta})$ and
//! $b = \kappa + (1 - \kappa)e^{-i\theta}$, and leaves the unit circle unless $\eta h < (\alpha + 1 - \kappa)\theta^2$: steps
//! would have to shrink like 1/n². One after the other, both are stable with the steps of a well-connected graph:
//!
//! - to *gather*, agents pull decisions and push trackers, and nobody descends;
//! - to *descend*, agents pull decisions and push nothing: a tracker changes by `d⁺ − d`, and by mass that was late.

use serde::{Deserialize, Serialize};

/// Which rounds agents gather in, and which they descend in.
///
/// ```
/// use fabswarm_shared::fab::Turns;
///
/// let turns = Turns { gather_rounds: 2, descend_rounds: 3 };
/// assert_eq!([0, 1, 2, 3, 4, 5].map(|round| turns.pushes(round)), [true, true, false, false, false, true]);
/// assert_eq!([0, 1, 2, 3, 4, 5].map(|round| turns.descends(round)), [false, false, true, true, true, false]);
/// assert!(Turns::TOGETHER.pushes(7) && Turns::TOGETHER.descends(7));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// Rounds of gathering, with which agents begin; 0: agents gather and descend in every round.
    pub gather_rounds: u32,
    /// Rounds of descending that follow, before agents gather again.
    pub descend_rounds: u32,
}

impl Turns {
    /// Agents gather and descend in every round, as in Algorithm 1.
    pub const TOGETHER: Self = Self { gather_rounds: 0, descend_rounds: 0 };

    /// Whether agents give shares of their trackers away in `round`.
    #[must_use]
    pub const fn pushes(self, round: u32) -> bool {
        self.gather_rounds == 0 || self.is_gathering(round)
    }

    /// Whether decisions descend in `round`.
    #[must_use]
    pub const fn descends(self, round: u32) -> bool {
        self.gather_rounds == 0 || !self.is_gathering(round)
    }

    const fn is_gathering(self, round: u32) -> bool {
        match round.checked_rem(self.gather_rounds.saturating_add(self.descend_rounds)) {
            Some(round) => round < self.gather_rounds,
            None => false,
        }
    }
}
