//! Claims that one frame is not enough to believe.

/// A number far ahead of what this agent expects. It is believed once frames of later rounds bear it out: a swarm that really
/// is ahead repeats it in every round, and a single damaged or malicious member cannot move anybody with one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Claim {
    value: u32,
    /// This agent's round when the claim was last supported.
    at: u32,
    support: u8,
}

impl Claim {
    /// Rounds of this agent in which a claim must be heard.
    const ENOUGH: u8 = 3;

    /// Notes that `value` was heard in round `now` and returns whether it is believed. Values within `tolerance` of each other
    /// support the same claim; any other value starts a new one.
    pub(super) fn is_borne_out(&mut self, value: u32, tolerance: u32, now: u32) -> bool {
        if self.support == 0 || value.abs_diff(self.value) > tolerance {
            *self = Self { value, at: now, support: 1 };
        } else if self.at != now {
            *self = Self { value, at: now, support: self.support.saturating_add(1) };
        }
        self.support >= Self::ENOUGH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_needs_three_rounds_that_continue_it() {
        let mut claim = Claim::default();
        assert!(!claim.is_borne_out(5000, 64, 1));
        assert!((0..100).all(|_| !claim.is_borne_out(5000, 64, 1)), "one round is one voice");
        assert!(!claim.is_borne_out(5001, 64, 2));
        assert!(claim.is_borne_out(5002, 64, 3));
        assert!(!claim.is_borne_out(5067, 64, 4), "another claim begins anew");
    }
}
