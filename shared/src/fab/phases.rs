//! Gathering and descending in turn, for graphs that mix slowly (not in the paper).
//!
//! On a directed ring of n agents pull and push turn the same way. With pull weight α, push weight 1 − κ and curvature h the
//! mode at the angle θ = 2π/n obeys $(z - a)(z - b) + \eta h (z - 1) = 0$ with $a = 1 - \alpha(1 - e^{-i\theta})$ and
//! $b = \kappa + (1 - \kappa)e^{-i\theta}$, and leaves the unit circle unless $\eta h < (\alpha + 1 - \kappa)\theta^2$: steps
//! would have to shrink like 1/n². In turn, each is stable with the steps of a well-connected graph:
//!
//! 1. to *gather trackers*, agents push them, and decisions stand still;
//! 2. to *descend*, agents pull decisions and push nothing: a tracker changes by `d⁺ − d`, and by mass that was late;
//! 3. to *gather decisions*, agents pull them, and neither push nor descend.
//!
//! To gather both at once would save rounds, but decisions and trackers travel around a ring at the same speed: what is left of
//! a wave in the decisions drives the trackers in their own slowest mode. After k rounds they disagree by about
//! $k \frac{\theta}{2} \cos^k \frac{\theta}{2}$ of what decisions did, and the next descent turns that into decisions again: a gain that grows
//! with n, and past 1 the swarm diverges turn by turn.

use serde::{Deserialize, Serialize};

/// Which rounds agents gather in, and which they descend in.
///
/// ```
/// use fabswarm_shared::fab::Phases;
///
/// let phases = Phases { gather_rounds: 2, descend_rounds: 3 };
/// assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|round| phases.pushes(round) as u8), [1, 1, 0, 0, 0, 0, 0, 1]);
/// assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|round| phases.pulls(round) as u8), [0, 0, 1, 1, 1, 1, 1, 0]);
/// assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|round| phases.descends(round) as u8), [0, 0, 1, 1, 1, 0, 0, 0]);
/// assert!(Phases::TOGETHER.pushes(7) && Phases::TOGETHER.pulls(7) && Phases::TOGETHER.descends(7));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// Rounds in which agents gather trackers, with which they begin, and as many in which they gather decisions after each
    /// descent; 0: agents gather and descend in every round.
    pub gather_rounds: u32,
    /// Rounds of descending in between.
    pub descend_rounds: u32,
}

impl Phases {
    /// Agents gather and descend in every round, as in Algorithm 1.
    pub const TOGETHER: Self = Self { gather_rounds: 0, descend_rounds: 0 };

    /// Whether agents give shares of their trackers away in `round`.
    pub const fn pushes(self, round: u32) -> bool {
        self.gather_rounds == 0 || self.place(round) < self.gather_rounds
    }

    /// Whether agents average the decisions they hear in `round`.
    pub const fn pulls(self, round: u32) -> bool {
        self.place(round) >= self.gather_rounds
    }

    /// Whether decisions descend in `round`.
    pub const fn descends(self, round: u32) -> bool {
        self.gather_rounds == 0
            || (self.pulls(round) && self.place(round) - self.gather_rounds < self.descend_rounds)
    }

    /// How many rounds of its three phases are over before `round`.
    const fn place(self, round: u32) -> u32 {
        match round.checked_rem(self.gather_rounds.saturating_mul(2).saturating_add(self.descend_rounds)) {
            Some(place) => place,
            None => 0,
        }
    }
}
