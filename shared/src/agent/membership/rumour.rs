//! News of another part of the swarm, heard by an agent that takes part.
//!
//! Two parts that were apart may be in different rounds, and may have been founded apart. A frame that shows it proves nothing: it
//! may have been recorded in an earlier life of the swarm. So the agent goes on as it is and says
//! [hello](crate::wire::frame::Hello) in the round, and with the epoch, that it has heard of. Agents of the other part answer
//! with a challenge to this boot of the agent; a recording does not. Agents of its own part ask too, as theirs may be the hello that
//! arrives there.

use super::{Config, MemberSet, Membership, RUMOUR_ROUNDS};
use crate::wire::frame::{Epoch, Frame};

/// A later round, or an epoch of a higher founding, that nobody has confirmed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rumour {
    /// How many rounds the other part is ahead, by the last frame that was heard of it; 0 where it is not ahead.
    lead: u32,
    /// The round of the other part that the agent asked for first.
    asked_from: u32,
    /// The epoch of a higher founding that was last heard of.
    epoch: Epoch,
    /// The members of that epoch; nobody where that was not heard.
    members: MemberSet,
    /// For how many rounds the agent says hello. Each agent that passes a rumour on has one less, so that it ends.
    pub(super) rounds_left: u8,
}

impl Rumour {
    pub(super) const NONE: Self =
        Self { lead: 0, asked_from: 0, epoch: Epoch::NONE, members: MemberSet::NOBODY, rounds_left: 0 };

    /// Begins a round of the agent.
    pub(super) fn begin_round(&mut self) {
        self.rounds_left = self.rounds_left.saturating_sub(1);
    }

    /// Notes that the agent goes on by `rounds` without having lived through them.
    pub(super) const fn catch_up(&mut self, rounds: u32) {
        self.lead = self.lead.saturating_sub(rounds);
    }

    /// Whether the agent asks.
    pub(super) const fn is_alive(&self) -> bool {
        self.rounds_left > 0
    }

    /// The round of the other part in the agent's round `own`.
    pub(super) const fn round(&self, own: u32) -> u32 {
        own.saturating_add(self.lead)
    }

    /// The epoch that the agent asks for, where it is in epoch `own`.
    pub(super) fn epoch(&self, own: Epoch) -> Epoch {
        self.epoch.max(own)
    }

    /// Whether a challenge that was put in `round` to the agent, in its round `own`, answers its hello of a later round. Frames may
    /// be `late` rounds late.
    pub(super) const fn is_confirmed(&self, round: u32, own: u32, late: u32) -> bool {
        let slack = late.saturating_add(1);
        let is_asked = round.saturating_add(slack) >= self.asked_from;
        self.is_alive() && self.lead > 0 && is_asked && round <= self.round(own).saturating_add(slack)
    }

    /// Takes note of a part that is `lead` rounds ahead of the agent's round `own`, or in `epoch` of a higher founding.
    pub(super) fn hear(&mut self, lead: u32, epoch: Option<Epoch>, own: u32, rounds_left: u8) {
        if (lead == 0 && epoch.is_none()) || rounds_left < self.rounds_left {
            return;
        }
        let is_known = self.is_alive() && lead.abs_diff(self.lead) <= 1;
        let asked_from = if is_known { self.asked_from } else { own.saturating_add(lead) };
        // Data frames do not name their epoch.
        let known = if self.is_alive() { self.epoch } else { Epoch::NONE };
        let epoch = epoch.unwrap_or(known);
        let members = if epoch == self.epoch { self.members } else { MemberSet::NOBODY };
        *self = Self { lead, asked_from, epoch, members, rounds_left };
    }

    /// Takes note of who belongs to an epoch, if it is the one that the agent asks for.
    pub(super) fn hear_members(&mut self, epoch: Epoch, members: MemberSet) {
        if self.is_alive() && epoch == self.epoch {
            self.members = members;
        }
    }

    /// The members of the epoch that the agent asks for, as far as it has heard.
    pub(super) fn members(&self) -> Option<&MemberSet> {
        Some(&self.members).filter(|members| !members.is_empty())
    }
}

impl Membership {
    /// Takes note of a part of the swarm that is in a later round, or of a higher founding.
    pub(super) fn overhear_part(&mut self, config: &Config, frame: &Frame<'_>) {
        let rounds_left = match frame {
            // The agent follows its own epoch without asking.
            Frame::Data(header, _) if header.epoch == self.epoch.tag() => return,
            Frame::Hello(hello) if self.is_fellow(hello) => hello.rounds_left.saturating_sub(1),
            // Its round is that of the agent that passes it on, which may be of this part.
            Frame::Hello(_) | Frame::Admission(_) => return,
            Frame::Members(header, _) => header.rounds_left.saturating_sub(1),
            _ => self.rumour_rounds(),
        };
        let own = self.rounds.own;
        let ahead = if config.is_lock_step() { frame.round().saturating_sub(own) } else { 0 };
        let epoch = match frame {
            // The only epoch that a tag names.
            Frame::Data(header, _) if header.epoch == Epoch::FIRST.tag() => Some(Epoch::FIRST),
            _ => frame.epoch(),
        };
        // Members of one founding may be one round apart for a moment. A hello names the round of another part.
        let is_other_part = epoch.is_some_and(|epoch| !epoch.is_of_founding(self.epoch));
        let is_certain = ahead > 1 || is_other_part || matches!(frame, Frame::Hello(_));
        let lead = if is_certain { ahead } else { 0 };
        let epoch = epoch.filter(|epoch| epoch.is_of_higher_founding(self.epoch));
        self.rumour.hear(lead, epoch, own, rounds_left);
    }

    /// For how many rounds agents ask for a part of the swarm that was heard directly: long enough to reach every member.
    pub(super) fn rumour_rounds(&self) -> u8 {
        self.members.len().clamp(RUMOUR_ROUNDS, u8::MAX.into()) as u8
    }
}
