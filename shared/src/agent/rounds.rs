//! How an agent counts rounds, and how one that has just started finds the round of its swarm, in lock-step.
//!
//! In lock-step a frame counts in its own round only, so a recording never does, provided that its receiver knows the round.
//! After a start it does not: a recording of the round in which it stopped looks like the present. So it follows the newest
//! round that it hears of, takes nothing, and says [hello](crate::wire::frame::Hello) with that round. Members answer only
//! if the round is theirs, with a challenge to this boot of the agent. The answer proves that the round was the
//! present one then, and as both count the same beats it still is.

use super::Mode;
use crate::corroboration::{Claim, Corroboration};

/// Own rounds after which a claim that nobody repeats makes room for another.
const EXPIRY_ROUNDS: u32 = 16;

/// Rounds by which a sender may be ahead before a single frame is not enough to believe it.
const ROUNDS_AHEAD: u32 = 64;

/// An agent's count of rounds, and its knowledge of the swarm's round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundSync {
    /// The round it is in.
    pub(super) own: u32,
    /// Whether the agent does not know the swarm's round yet.
    pub(super) is_pending: bool,
    /// How far the swarm is ahead of the agent's own count. Recordings show too little of it, and never too much.
    lead: Option<i32>,
    /// A larger lead that was heard.
    claimed: i32,
    support: Corroboration,
    /// The agent's round when it last heard data of its own round, or found the round.
    data_at: u32,
    /// A round of one sender that is far ahead.
    jump: Claim,
}

/// How old a frame is, as far as the agent can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameAge {
    /// The frame is of the present round.
    Current,
    /// The frame is of the present round, and told that this is a later one than was known.
    Advanced,
    /// The frame is of an earlier round, or of one that is not believed yet.
    Rejected,
}

impl RoundSync {
    /// The state of an agent in round `own` that knows the round.
    pub(super) fn known(own: u32) -> Self {
        Self { is_pending: false, ..Self::pending(own, Some(0)) }
    }

    /// The state of an agent in round `own` that does not know the swarm's; with `lead` 0 it cannot be before the agent's own.
    pub(super) fn pending(own: u32, lead: Option<i32>) -> Self {
        let (support, jump) = (Corroboration::default(), Claim::default());
        Self { own, is_pending: true, lead, claimed: 0, support, data_at: 0, jump }
    }

    /// Takes the agent's own round for the swarm's.
    pub(super) fn settle(&mut self) {
        *self = Self { jump: self.jump, ..Self::known(self.own) };
    }

    /// Forgets what was heard of the swarm's round; with `lead` 0 it cannot be before the agent's own.
    pub(super) fn doubt(&mut self, lead: Option<i32>) {
        *self = Self { jump: self.jump, ..Self::pending(self.own, lead) };
    }

    /// Goes on from the round that was found to be the swarm's.
    pub(super) fn find(&mut self) {
        self.own = self.present();
        self.settle();
        self.data_at = self.own;
    }

    /// Whether a frame shows that the swarm went on without this agent, as after a suspension. Agents that send data may be a round
    /// ahead for a moment, but not for long.
    pub(super) fn is_left_behind(&mut self, frame_round: u32, is_data: bool) -> bool {
        if is_data && frame_round == self.own {
            self.data_at = self.own;
        }
        let is_late = is_data && self.own > self.data_at.saturating_add(EXPIRY_ROUNDS);
        frame_round > self.own.saturating_add(u32::from(!is_late))
    }

    /// The round of the swarm, as far as the agent knows: it stamps that on its frames.
    pub(super) const fn present(&self) -> u32 {
        match self.lead {
            Some(lead) => self.own.wrapping_add_signed(lead),
            None => self.own,
        }
    }

    /// Takes the agent's own count for the swarm's, unless it heard another one.
    pub(super) fn trust_own_count(&mut self) {
        self.lead.get_or_insert(0);
    }

    /// Takes note of a frame of `frame_round` while the round is pending, where frames may be `late` rounds late.
    pub(super) fn observe(&mut self, frame_round: u32, late: u32) -> FrameAge {
        let ahead = frame_round.wrapping_sub(self.own) as i32;
        let reach = ahead.saturating_add_unsigned(late);
        if let Some(lead) = self.lead.filter(|&lead| ahead <= lead) {
            return if reach >= lead { FrameAge::Current } else { FrameAge::Rejected };
        }
        if self.support.is_over(self.own, EXPIRY_ROUNDS) || ahead > self.claimed.saturating_add_unsigned(late)
        {
            (self.claimed, self.support) = (ahead, Corroboration::begun(self.own));
        } else if reach >= self.claimed && self.support.repeat(self.own) {
            self.claimed = self.claimed.max(ahead);
        }
        if !self.support.is_enough() {
            return FrameAge::Rejected;
        }
        (self.lead, self.support) = (Some(self.claimed), Corroboration::default());
        FrameAge::Advanced
    }

    /// Whether a sender can be in `round`, as far as one frame can show it, if this agent took its frame of the round
    /// `taken.0` in its own round `taken.1`.
    pub(super) fn believes(&mut self, mode: Mode, taken: Option<(u32, u32)>, round: u32) -> bool {
        let (expected, tolerance) = match (mode, taken) {
            (Mode::LockStep, _) => (self.own, ROUNDS_AHEAD),
            // Its clock is its own: a few times as fast as this agent's, at most.
            (Mode::FreeRunning, Some((taken, taken_at))) => {
                let elapsed = self.own.saturating_sub(taken_at);
                (taken.saturating_add(elapsed.saturating_mul(4)), ROUNDS_AHEAD)
            }
            (Mode::FreeRunning, None) => (self.own.saturating_mul(2), ROUNDS_AHEAD.max(round / 4)),
        };
        round <= expected.saturating_add(ROUNDS_AHEAD) || self.jump.observe(round, tolerance, self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The age of a frame of `frame_round` for an agent in round `own`.
    fn observed(sync: &mut RoundSync, frame_round: u32, own: u32, late: u32) -> FrameAge {
        sync.own = own;
        sync.observe(frame_round, late)
    }

    #[test]
    fn a_lead_needs_three_rounds_and_only_grows() {
        let mut sync = RoundSync::pending(0, None);
        assert_eq!(observed(&mut sync, 500, 0, 0), FrameAge::Rejected);
        assert_eq!(observed(&mut sync, 500, 0, 0), FrameAge::Rejected, "one round is one voice");
        // Recordings in between neither help nor disturb.
        assert_eq!(observed(&mut sync, 300, 1, 0), FrameAge::Rejected);
        assert_eq!(observed(&mut sync, 501, 1, 0), FrameAge::Rejected);
        assert_eq!((observed(&mut sync, 502, 2, 0), sync.present()), (FrameAge::Advanced, 502));
        assert_eq!(observed(&mut sync, 502, 2, 0), FrameAge::Current);
        assert_eq!(observed(&mut sync, 502, 3, 0), FrameAge::Rejected);
        assert_eq!(observed(&mut sync, 502, 3, 1), FrameAge::Current);
        // The agent has followed a recording.
        for own in 4..6 {
            assert_eq!(
                (observed(&mut sync, 900 + own, own, 0), sync.present()),
                (FrameAge::Rejected, 500 + own)
            );
        }
        assert_eq!((observed(&mut sync, 906, 6, 0), sync.present()), (FrameAge::Advanced, 906));
        sync.find();
        assert_eq!((sync.own, sync.is_pending), (906, false));
    }

    #[test]
    fn an_own_count_is_trusted_unless_another_was_heard() {
        let mut sync = RoundSync::pending(7, None);
        sync.trust_own_count();
        assert_eq!([6, 7].map(|round| sync.observe(round, 0)), [FrameAge::Rejected, FrameAge::Current]);
        for own in 8..11 {
            let _ = observed(&mut sync, own + 30, own, 0);
        }
        sync.trust_own_count();
        assert_eq!(sync.present(), 40);
    }

    #[test]
    fn a_single_frame_far_ahead_is_forgotten() {
        let mut sync = RoundSync::pending(10, Some(0));
        assert_eq!(sync.observe(u32::MAX / 2, 0), FrameAge::Rejected);
        let found = (11..40).find(|&own| observed(&mut sync, own + 70, own, 0) == FrameAge::Advanced);
        assert_eq!(found, Some(10 + EXPIRY_ROUNDS + 1 + u32::from(Corroboration::ENOUGH) - 1));
        assert_eq!(sync.present(), sync.own + 70);
    }

    #[test]
    fn a_joiner_that_hears_data_of_the_next_round_alone_is_left_behind() {
        let mut sync = RoundSync::pending(100, Some(0));
        sync.find();
        let mut is_left_behind = |ahead, own, is_data| {
            sync.own = own;
            sync.is_left_behind(own + ahead, is_data)
        };
        assert!((100..=100 + EXPIRY_ROUNDS).all(|own| !is_left_behind(1, own, true)));
        let own = 101 + EXPIRY_ROUNDS;
        assert!(!is_left_behind(1, own, false), "other joiners may be ahead");
        assert!(is_left_behind(1, own, true) && is_left_behind(2, own, false));
        assert!(!is_left_behind(0, own, true) && !is_left_behind(1, own, true));
    }

    #[test]
    fn a_swarm_may_be_younger_than_its_joiner_but_not_than_a_saved_state() {
        let (mut joiner, mut restored) = (RoundSync::pending(0, None), RoundSync::pending(0, Some(0)));
        for own in 100..103 {
            let _ = observed(&mut joiner, own - 95, own, 0);
            assert_eq!(observed(&mut restored, own - 95, own, 0), FrameAge::Rejected);
        }
        assert_eq!((joiner.present(), restored.present()), (7, 102));
    }

    /// A sender whose clock is its own may have begun long before. What goes on from its round by at most a quarter bears it out.
    #[test]
    fn a_round_far_ahead_is_believed_from_a_sender_that_goes_on_from_it() {
        for (first, is_believed) in [(600, true), (599, false)] {
            let mut sync = RoundSync::known(0);
            let believed = [first, 800, 1000].map(|round| {
                let believed = sync.believes(Mode::FreeRunning, None, round);
                sync.own += 1;
                believed
            });
            assert_eq!(believed, [false, false, is_believed], "from {first}");
        }
    }

    #[test]
    fn a_sender_that_was_taken_runs_at_most_four_times_as_fast() {
        let mut sync = RoundSync::known(30);
        let mut believes = |mode, taken, round| sync.believes(mode, taken, round);
        for (mode, taken, last) in [
            (Mode::LockStep, None, 30 + 64),
            (Mode::FreeRunning, None, 2 * 30 + 64),
            (Mode::FreeRunning, Some((500, 20)), 500 + 4 * 10 + 64),
        ] {
            assert_eq!([last, last + 1].map(|round| believes(mode, taken, round)), [true, false], "{mode:?}");
        }
    }
}
