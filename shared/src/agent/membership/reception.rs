//! What an agent learns from frames: whether they are of the present, which epochs there are, and who is in its own.

use super::{Config, Due, Epoch, FrameAge, MemberSet, Membership, Received, Refusal};
use crate::problem::Shape;
use crate::wire::frame::{EpochTag, Frame, MembersHeader};

impl Membership {
    /// Hears a frame, and returns whether it is worth a look: in lock-step, not of a round that is over.
    pub(in super::super) fn hear(&mut self, config: &Config, frame: &Frame<'_>) -> bool {
        if config.is_lock_step() && !self.is_present(config.late_rounds, frame) {
            return false;
        }
        if !self.is_waiting() {
            self.overhear_part(config, frame);
        }
        true
    }

    /// Takes a frame about members, from a sender whose data this agent took last in its round `taken_at`. Returns what it was, and
    /// whether it moved the agent to another round.
    pub(in super::super) fn receive(
        &mut self,
        config: &Config,
        shape: &Shape,
        frame: &Frame<'_>,
        taken_at: Option<u32>,
    ) -> (Received, bool) {
        let received = match frame {
            Frame::Data(..) => Received::Unchanged,
            Frame::Hello(hello) => self.receive_hello(config, shape, hello, taken_at),
            Frame::Members(header, set) => self.receive_members(config.id, *header, set),
            Frame::Silence(header, report) => self.receive_silence(*header, report),
            Frame::Admission(admission) => {
                return (Received::Unchanged, self.receive_admission(config, admission));
            }
        };
        (received, false)
    }

    /// In lock-step a frame of the present round and founding is a sign of life, whatever is in it.
    pub(in super::super) fn note_life(&mut self, config: &Config, frame: &Frame<'_>, received: Received) {
        if config.is_lock_step()
            && frame.round() <= self.rounds.own.saturating_add(1)
            && self.is_of_founding(frame)
            && !matches!(received, Received::Refused(_))
        {
            self.silence.shorten(frame.sender(), 0);
        }
    }

    /// Whether a frame of a lock-step swarm is not more than `late` rounds older than it may be, as far as this agent can tell.
    fn is_present(&mut self, late: u32, frame: &Frame<'_>) -> bool {
        let round = frame.round();
        // Agents that take part send data. Others may be behind like this one.
        let is_data = matches!(frame, Frame::Data(..));
        if !self.rounds.is_pending && self.is_joining() && self.rounds.is_left_behind(round, is_data) {
            self.rounds.doubt(Some(0));
        }
        if !self.rounds.is_pending {
            return round.saturating_add(late) >= self.rounds.own;
        }
        if let Frame::Hello(hello) = frame {
            if self.is_alone() {
                // No round is left to be found: joiners agree on the highest of their own.
                self.rounds.trust_own_count();
            } else if hello.epoch == Epoch::NONE {
                // It knows no more than this agent.
                return false;
            }
        }
        let age = self.rounds.observe(round, late);
        if age == FrameAge::Advanced {
            // Frames heard before were recorded.
            if !self.is_alone() {
                self.alone_since = self.rounds.own;
            }
            self.heard_epoch = (!self.is_joining()).then_some(self.epoch);
            if self.is_joining() {
                self.members = MemberSet::NOBODY;
            }
            self.admissions.clear();
            self.outbox.set(Due::Members, false);
            self.outbox.set(Due::Admission, false);
        }
        age != FrameAge::Rejected
    }

    /// Whether a frame is of this agent's founding, as far as it tells.
    fn is_of_founding(&self, frame: &Frame<'_>) -> bool {
        match frame {
            Frame::Data(header, _) => header.epoch == self.epoch.tag(),
            _ => frame.epoch().is_some_and(|epoch| epoch.is_of_founding(self.epoch)),
        }
    }

    /// Whether a frame names the very epoch of this agent, and no other one that is asked for.
    pub(in super::super) fn is_of_epoch(&self, frame: &Frame<'_>) -> bool {
        match frame {
            Frame::Data(header, _) => header.epoch == self.epoch.tag(),
            Frame::Hello(_) => false,
            _ => frame.epoch() == Some(self.epoch),
        }
    }

    /// A broadcast of another epoch cannot count. Which of the two is later shows when both are announced. The first is never the later one.
    pub(in super::super) fn receive_other_epoch(&mut self, epoch: EpochTag) -> Received {
        if !self.is_waiting() {
            self.announce();
            return Received::OtherEpoch;
        }
        if epoch == Epoch::FIRST.tag() {
            self.overhear_epoch(Epoch::FIRST);
        }
        self.alone_since = self.rounds.own;
        Received::OtherEpoch
    }

    /// Notes an epoch that others are in.
    pub(super) fn overhear_epoch(&mut self, epoch: Epoch) {
        if Some(epoch) > self.heard_epoch {
            self.heard_epoch = Some(epoch);
            if self.is_joining() {
                // The members of the epoch are not known yet.
                self.members = MemberSet::NOBODY;
            }
        }
    }

    /// Announces this epoch to agents that are behind.
    pub(super) fn announce(&mut self) {
        self.announce_until = self.announce_until.max(self.rounds.own.saturating_add(2));
        self.outbox.set(Due::Members, true);
    }

    /// Whether the swarm can be in `epoch`, as far as one frame can show it. Of another founding all numbers are believed: an agent
    /// goes there only by an answer to itself.
    pub(super) fn believes_epoch(&mut self, epoch: Epoch) -> bool {
        let known = if self.is_waiting() { self.heard_epoch.unwrap_or(self.epoch) } else { self.epoch };
        let is_far_ahead = epoch.is_of_founding(known) && epoch.is_far_ahead_of(known);
        epoch.is_valid() && (!is_far_ahead || self.epoch_claim.observe(epoch.number, 0, self.rounds.own))
    }

    /// Takes an announcement of the members of an epoch.
    fn receive_members(&mut self, id: u16, header: MembersHeader, set: &[u8]) -> Received {
        let Some(members) = MemberSet::from_bytes(set) else {
            return Received::Refused(Refusal::NotMember);
        };
        if !self.believes_epoch(header.epoch) {
            return Received::Refused(Refusal::Jump);
        }
        if self.is_joining() {
            return self.consider(id, header.epoch, members);
        }
        if self.rounds.is_pending {
            self.overhear_epoch(header.epoch);
            self.alone_since = self.rounds.own;
            return Received::Unchanged;
        }
        let is_change = header.epoch.is_of_founding(self.epoch) && header.epoch > self.epoch;
        if is_change || self.is_offered(id, header.epoch, &members) {
            self.enter(id, header.epoch, members);
            return Received::NewEpoch;
        }
        if header.epoch < self.epoch {
            self.announce();
        }
        self.rumour.hear_members(header.epoch, members);
        Received::Unchanged
    }

    /// Whether `epoch` was opened for this agent, by somebody who has put a challenge to it in its present boot.
    fn is_offered(&self, id: u16, epoch: Epoch, members: &MemberSet) -> bool {
        !self.has_left && members.contains(id) && self.admissions.has_offer(epoch, id)
    }

    /// Lets an agent that is joining enter an epoch that was opened for it. After a restart it may hear of epochs that it lived
    /// in and has forgotten, late or from a recording, and must not enter them with an empty ledger. One that its challenger
    /// opened after it put the challenge, later than all that the agent has heard of this founding, is none of these: the challenger
    /// knew of no later epoch than the joiner did.
    fn consider(&mut self, id: u16, epoch: Epoch, members: MemberSet) -> Received {
        let is_later = self.heard_epoch.is_none_or(|heard| epoch > heard);
        let is_other_founding = self.heard_epoch.is_some_and(|heard| !epoch.is_of_founding(heard));
        if (is_later || is_other_founding) && self.is_offered(id, epoch, &members) {
            self.enter(id, epoch, members);
            return Received::NewEpoch;
        }
        if is_later || (Some(epoch) == self.heard_epoch && self.members != members) {
            // Somebody may hear of it from this agent only.
            (self.heard_epoch, self.members) = (Some(epoch), members);
            self.announce();
        }
        self.alone_since = self.rounds.own;
        Received::Unchanged
    }
}
