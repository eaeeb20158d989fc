//! The members of the swarm, and their epoch.

use super::peers::Peers;
use super::{ANNOUNCE_ROUNDS, Agent, Epoch, MemberSet, Received, Refusal, Rumour, Silence};
use crate::ledger::ShareWeights;
use crate::problem::Problem;
use crate::wire::frame::{EpochTag, MembersHeader};

impl<P, L, const WORDS: usize> Agent<P, L, WORDS>
where
    P: Problem<f32>,
    L: Peers<WORDS>,
{
    /// Leaves the swarm: opens an epoch without this agent, and sends no data or hello frames from then on.
    pub fn leave(&mut self) {
        if self.is_joining() {
            return;
        }
        let Some(next) = self.epoch.next(self.config.id) else { return };
        let mut members = self.members;
        members.remove(self.config.id);
        self.has_left = true;
        self.enter(next, members);
    }

    /// A broadcast of another epoch cannot count. Which of the two is later shows when both are announced. The first is never the later one.
    pub(super) fn receive_other_epoch(&mut self, epoch: EpochTag) -> Received {
        if !self.is_waiting() {
            self.announce();
            return Received::OtherEpoch;
        }
        if epoch == Epoch::FIRST.tag() {
            self.overhear_epoch(Epoch::FIRST);
        }
        self.alone_since = self.round;
        Received::OtherEpoch
    }

    /// Notes an epoch that others are in.
    pub(super) fn overhear_epoch(&mut self, epoch: Epoch) {
        if Some(epoch) > self.heard_epoch {
            self.heard_epoch = Some(epoch);
            if self.is_joining() {
                // The members of the epoch are not known yet.
                self.members = MemberSet::default();
            }
        }
    }

    /// Announces this epoch to agents that are behind.
    pub(super) fn announce(&mut self) {
        self.announce_until = self.announce_until.max(self.round.saturating_add(2));
        self.outbox.has_members = true;
    }

    /// Whether the swarm can be in `epoch`, as far as one frame can show it. Of another founding all numbers are believed: an agent
    /// goes there only by an answer to itself.
    pub(super) fn believes_epoch(&mut self, epoch: Epoch) -> bool {
        let known = if self.is_waiting() { self.heard_epoch.unwrap_or(self.epoch) } else { self.epoch };
        let is_far_ahead = epoch.is_of_founding(known) && epoch.is_far_ahead_of(known);
        epoch.is_valid() && (!is_far_ahead || self.epoch_claim.is_borne_out(epoch.number, 0, self.round))
    }

    /// Takes an announcement of the members of an epoch.
    pub(super) fn receive_members(&mut self, header: MembersHeader, set: &[u8]) -> Received {
        let Some(members) = MemberSet::from_bytes(set) else {
            return Received::Refused(Refusal::NotMember);
        };
        if !self.believes_epoch(header.epoch) {
            return Received::Refused(Refusal::Jump);
        }
        if self.is_joining() {
            return self.consider(header.epoch, members);
        }
        if self.sync.is_pending {
            self.overhear_epoch(header.epoch);
            self.alone_since = self.round;
            return Received::Unchanged;
        }
        let is_change = header.epoch.is_of_founding(self.epoch) && header.epoch > self.epoch;
        if is_change || self.is_offered(header.epoch, &members) {
            self.enter(header.epoch, members);
            return Received::NewEpoch;
        }
        if header.epoch < self.epoch {
            self.announce();
        }
        self.rumour.hear_members(header.epoch, members);
        Received::Unchanged
    }

    /// Whether `epoch` was opened for this agent, by somebody who has put a challenge to it in its present boot.
    fn is_offered(&self, epoch: Epoch, members: &MemberSet) -> bool {
        !self.has_left && members.contains(self.config.id) && self.admissions.has_offer(epoch, self.config.id)
    }

    /// Lets an agent that is joining enter an epoch that was opened for it. After a restart it may hear of epochs that it lived
    /// in and has forgotten, late or from a recording, and must not enter them with an empty ledger. One that its challenger
    /// opened after it put the challenge, later than all that the agent has heard of this founding, is none of these: the challenger
    /// knew of no later epoch than the joiner did.
    fn consider(&mut self, epoch: Epoch, members: MemberSet) -> Received {
        let is_later = self.heard_epoch.is_none_or(|heard| epoch > heard);
        let is_other_founding = self.heard_epoch.is_some_and(|heard| !epoch.is_of_founding(heard));
        if (is_later || is_other_founding) && self.is_offered(epoch, &members) {
            self.enter(epoch, members);
            return Received::NewEpoch;
        }
        if is_later || (Some(epoch) == self.heard_epoch && self.members != members) {
            // Somebody may hear of it from this agent only.
            (self.heard_epoch, self.members) = (Some(epoch), members);
            self.announce();
        }
        self.alone_since = self.round;
        Received::Unchanged
    }

    /// The members of the first epoch.
    #[cfg_attr(microcontroller, inline(never))]
    pub(super) fn founders(&self) -> MemberSet {
        MemberSet::first(self.config.founders).unwrap_or_default()
    }

    /// Starts the ledger of an epoch. An agent that is no member of it joins again.
    pub(super) fn enter(&mut self, epoch: Epoch, members: MemberSet) {
        let is_member = members.contains(self.config.id);
        if self.is_joining() {
            self.silence = Silence::NONE;
        }
        self.epoch = if is_member { epoch } else { Epoch::NONE };
        self.rumour = Rumour::NONE;
        self.admissions.withdraw(self.config.id);
        (self.heard_epoch, self.alone_since) = (Some(epoch), self.round);
        self.members = members;
        self.t = self.d;
        self.accumulator = [0.0; WORDS];
        self.sent = self.v;
        self.sigma = [0; WORDS];
        self.carry = [0; WORDS];
        for index in 0..self.peers.listed() {
            self.peers.listed_at_mut(index).1.reset();
        }
        for place in 0..self.peers.len() {
            self.peers.get_mut(place).reset();
        }
        self.encoder.begin_epoch(self.round);
        self.share_weights = self.current_share_weights();
        self.announce_until = self.round.saturating_add(ANNOUNCE_ROUNDS);
        self.outbox.has_members = true;
        self.outbox.has_data = true;
    }

    /// The shares that this agent gives in each round to the members of its epoch.
    pub(super) fn current_share_weights(&self) -> ShareWeights {
        ShareWeights::new(self.config.self_weight, self.config.links.audience(self.config.id, &self.members))
    }
}
