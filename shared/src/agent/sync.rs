//! How an agent that has just started finds the round of its swarm, in lock-step.
//!
//! In lock-step a frame counts in its own round only, so a recording never does, provided that its receiver knows the round.
//! After a start it does not: a recording of the round in which it stopped looks like the present. So it follows the newest
//! round that it hears of, takes nothing, and says [hello](crate::wire::frame::Hello) with that round. Members answer only
//! if the round is theirs, with a challenge to this boot of the agent. The answer proves that the round was the
//! present one then, and as both count the same beats it still is.

/// Rounds in which a round further ahead must be heard before it is believed.
const ENOUGH: u8 = 3;
/// Own rounds after which a claim that nobody repeats makes room for another.
const PATIENCE: u32 = 16;

/// An agent's knowledge of the swarm's round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundSync {
    /// Whether the agent does not know yet.
    pub(super) is_pending: bool,
    /// How far the swarm is ahead of the agent's own count. Recordings show too little of it, and never too much.
    lead: Option<i32>,
    /// A larger lead that was heard, the agent's round when it was heard last, and in how many rounds. An agent that knows the round
    /// notes there when it last heard data of its own.
    claim: i32,
    claimed_at: u32,
    support: u8,
    /// The agent's round when it last heard a frame of the present round.
    heard_at: Option<u32>,
}

/// How old a frame is, as far as the agent can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameAge {
    /// Of the present round.
    Present,
    /// Of the present round, which is later than was known.
    Later,
    /// Of an earlier round, or of one that is not believed yet.
    Other,
}

impl RoundSync {
    /// The state of an agent that knows the round.
    pub(super) const fn known() -> Self {
        Self { is_pending: false, ..Self::pending(Some(0)) }
    }

    /// The state of an agent that does not know the round; with `lead` 0 it cannot be before the agent's own.
    pub(super) const fn pending(lead: Option<i32>) -> Self {
        Self { is_pending: true, lead, claim: 0, claimed_at: 0, support: 0, heard_at: None }
    }

    /// The state of an agent that has found out that the round is `round`.
    pub(super) const fn found(round: u32) -> Self {
        Self { claimed_at: round, ..Self::known() }
    }

    /// Whether a frame shows that the swarm went on without this agent, as after a suspension. Agents that send data may be a round
    /// ahead for a moment, but not for long.
    pub(super) fn is_left_behind(&mut self, frame_round: u32, own: u32, is_data: bool) -> bool {
        if is_data && frame_round == own {
            self.claimed_at = own;
        }
        let is_late = is_data && own > self.claimed_at.saturating_add(PATIENCE);
        frame_round > own.saturating_add(u32::from(!is_late))
    }

    /// Stops taking the agent's own round for the swarm's.
    pub(super) fn doubt(&mut self) {
        if !self.is_pending {
            *self = Self::pending(Some(0));
        }
    }

    /// The round of the swarm, where this agent's own is `round`.
    pub(super) fn present(&self, round: u32) -> u32 {
        round.wrapping_add_signed(self.lead.unwrap_or(0))
    }

    /// Takes the agent's own count for the swarm's, unless it heard another one.
    pub(super) fn trust_own_count(&mut self) {
        self.lead.get_or_insert(0);
    }

    /// Looks at a frame of `frame_round` that came in the agent's round `own`, where frames may be `late` rounds late.
    pub(super) fn note(&mut self, frame_round: u32, own: u32, late: u32) -> FrameAge {
        let ahead = frame_round.wrapping_sub(own) as i32;
        let reach = ahead.saturating_add_unsigned(late);
        if self.lead.is_some_and(|lead| ahead <= lead) {
            let is_present = self.lead.is_some_and(|lead| reach >= lead);
            return if is_present { self.hear(own) } else { FrameAge::Other };
        }
        let is_forgotten = self.support == 0 || own.saturating_sub(self.claimed_at) > PATIENCE;
        if is_forgotten || ahead > self.claim.saturating_add_unsigned(late) {
            (self.claim, self.claimed_at, self.support) = (ahead, own, 1);
        } else if reach >= self.claim && self.claimed_at != own {
            (self.claim, self.claimed_at, self.support) = (self.claim.max(ahead), own, self.support + 1);
        }
        if self.support < ENOUGH {
            return FrameAge::Other;
        }
        (self.lead, self.support) = (Some(self.claim), 0);
        self.hear(own);
        FrameAge::Later
    }

    /// Notes that a frame of the present round was heard.
    pub(super) fn hear(&mut self, own: u32) -> FrameAge {
        self.heard_at = Some(own);
        FrameAge::Present
    }

    /// Whether a frame of the present round was heard in the agent's round `own`.
    pub(super) fn has_heard(&self, own: u32) -> bool {
        self.heard_at == Some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_needs_three_rounds_and_only_grows() {
        let mut sync = RoundSync::pending(None);
        assert_eq!(sync.note(500, 0, 0), FrameAge::Other);
        assert_eq!(sync.note(500, 0, 0), FrameAge::Other, "one round is one voice");
        // Recordings in between neither help nor disturb.
        assert_eq!(sync.note(300, 1, 0), FrameAge::Other);
        assert_eq!(sync.note(501, 1, 0), FrameAge::Other);
        assert_eq!((sync.note(502, 2, 0), sync.present(2)), (FrameAge::Later, 502));
        assert_eq!(sync.note(502, 2, 0), FrameAge::Present);
        assert_eq!((sync.note(502, 3, 0), sync.note(502, 3, 1)), (FrameAge::Other, FrameAge::Present));
        assert!(sync.has_heard(3) && !sync.has_heard(2));
        // The agent has followed a recording.
        for own in 4..6 {
            assert_eq!((sync.note(900 + own, own, 0), sync.present(own)), (FrameAge::Other, 500 + own));
        }
        assert_eq!((sync.note(906, 6, 0), sync.present(6)), (FrameAge::Later, 906));
    }

    #[test]
    fn an_own_count_is_trusted_unless_another_was_heard() {
        let mut sync = RoundSync::pending(None);
        sync.trust_own_count();
        assert_eq!((sync.note(6, 7, 0), sync.note(7, 7, 0)), (FrameAge::Other, FrameAge::Present));
        for own in 8..11 {
            let _ = sync.note(own + 30, own, 0);
        }
        sync.trust_own_count();
        assert_eq!(sync.present(11), 41);
    }

    #[test]
    fn a_single_frame_far_ahead_is_forgotten() {
        let mut sync = RoundSync::pending(Some(0));
        assert_eq!(sync.note(u32::MAX / 2, 10, 0), FrameAge::Other);
        let found = (11..40).find(|own| sync.note(own + 70, *own, 0) == FrameAge::Later);
        assert_eq!(found, Some(10 + PATIENCE + 1 + u32::from(ENOUGH) - 1));
        assert_eq!(sync.present(40), 110);
    }

    #[test]
    fn a_joiner_that_hears_data_of_the_next_round_alone_is_left_behind() {
        let mut sync = RoundSync::found(100);
        assert!((100..=100 + PATIENCE).all(|own| !sync.is_left_behind(own + 1, own, true)));
        let own = 101 + PATIENCE;
        assert!(!sync.is_left_behind(own + 1, own, false), "other joiners may be ahead");
        assert!(sync.is_left_behind(own + 1, own, true) && sync.is_left_behind(own + 2, own, false));
        assert!(!sync.is_left_behind(own, own, true) && !sync.is_left_behind(own + 1, own, true));
    }

    #[test]
    fn a_swarm_may_be_younger_than_its_joiner_but_not_than_a_saved_state() {
        let (mut joiner, mut restored) = (RoundSync::pending(None), RoundSync::pending(Some(0)));
        for own in 100..103 {
            let _ = joiner.note(own - 95, own, 0);
            assert_eq!(restored.note(own - 95, own, 0), FrameAge::Other);
        }
        assert_eq!((joiner.present(103), restored.present(103)), (8, 103));
    }
}
