//! Claims that one frame is not enough to believe.
//!
//! A swarm that really is ahead, or keeps another time, repeats it in every round. A single damaged or malicious member cannot move
//! anybody with one frame.

/// In how many rounds of its listener a claim was heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Corroboration {
    /// The listener's round when it was heard last.
    at: u32,
    rounds: u8,
}

impl Corroboration {
    /// Rounds in which a claim must be heard before it is believed.
    pub(crate) const ENOUGH: u8 = 3;

    /// A claim that was heard in round `now`.
    pub(crate) const fn begun(now: u32) -> Self {
        Self { at: now, rounds: 1 }
    }

    /// Whether there is no claim, or nobody has repeated it for more than `expiry_rounds` rounds.
    pub(crate) const fn is_over(&self, now: u32, expiry_rounds: u32) -> bool {
        self.rounds == 0 || now.wrapping_sub(self.at) > expiry_rounds
    }

    /// Notes that the claim was repeated in round `now`, which counts once. Returns whether it counted.
    pub(crate) const fn repeat(&mut self, now: u32) -> bool {
        let is_new = self.at != now;
        if is_new {
            *self = Self { at: now, rounds: self.rounds.saturating_add(1) };
        }
        is_new
    }

    /// Whether the claim is believed.
    pub(crate) const fn is_enough(&self) -> bool {
        self.rounds >= Self::ENOUGH
    }
}

/// A number far ahead of what an agent expects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    value: u32,
    support: Corroboration,
}

impl Claim {
    /// Notes that `value` was heard in round `now` and returns whether it is believed. Values within `tolerance` of each other
    /// support the same claim; any other value starts a new one.
    pub(crate) const fn observe(&mut self, value: u32, tolerance: u32, now: u32) -> bool {
        if self.support.is_over(now, u32::MAX) || value.abs_diff(self.value) > tolerance {
            *self = Self { value, support: Corroboration::begun(now) };
        } else if self.support.repeat(now) {
            self.value = value;
        }
        self.support.is_enough()
    }
}
