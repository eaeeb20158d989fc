//! Who belongs to the swarm, and since when.

use super::peers::Peers;
use super::{ANNOUNCE_ROUNDS, Agent, MemberSet, Received, Refusal};
use crate::ledger::ShareWeights;
use crate::problem::Problem;
use crate::wire::frame::{DataHeader, MembersHeader};

/// The number of an epoch after the first, modulo this, is the agent that opened it, so that no two agents open the same one.
const OPENERS: u32 = MemberSet::CAPACITY as u32;

/// Changes of members that an agent may have missed before a single frame is not enough to believe them.
const EPOCHS_AHEAD: u32 = 8;

/// No epoch is opened after this one.
const LAST_EPOCH: u32 = u32::MAX - (1 << 20);

/// The epoch that `opener` opens after `epoch`, unless they are spent.
pub(super) const fn next_epoch(epoch: u32, opener: u16) -> Option<u32> {
    let next = (epoch / OPENERS).saturating_add(1).saturating_mul(OPENERS).saturating_add(opener as u32);
    if next <= LAST_EPOCH { Some(next) } else { None }
}

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
        let Some(next) = next_epoch(self.epoch, self.config.id) else { return };
        let mut members = self.members;
        members.remove(self.config.id);
        self.has_left = true;
        self.enter(next, members);
    }

    /// A broadcast of another epoch: it cannot count, but shows which of the two is behind.
    pub(super) fn receive_other_epoch(&mut self, header: DataHeader) -> Received {
        if self.is_waiting() {
            if !self.believes_epoch(header.epoch) {
                return Received::Refused(Refusal::Jump);
            }
            self.overhear_epoch(header.epoch);
            self.alone_since = self.round;
        } else if header.epoch < self.epoch {
            self.announce();
        }
        Received::OtherEpoch
    }

    /// Notes an epoch that others are in.
    pub(super) fn overhear_epoch(&mut self, epoch: u32) {
        if Some(epoch) > self.heard_epoch {
            self.heard_epoch = Some(epoch);
            if self.is_joining() {
                // Who belongs to it is not known yet.
                self.members = MemberSet::default();
            }
        }
    }

    /// Announces this epoch to agents that are behind.
    pub(super) fn announce(&mut self) {
        self.announce_until = self.announce_until.max(self.round.saturating_add(2));
        self.outbox.has_members = true;
    }

    /// Whether `epoch` is further ahead than a few changes of members make it.
    fn is_far_ahead(&self, epoch: u32) -> bool {
        let known = self.heard_epoch.unwrap_or(0).max(self.epoch);
        epoch / OPENERS > known / OPENERS + EPOCHS_AHEAD
    }

    /// Whether the swarm can be in `epoch`, as far as one frame can show it.
    pub(super) fn believes_epoch(&mut self, epoch: u32) -> bool {
        epoch <= LAST_EPOCH
            && (!self.is_far_ahead(epoch) || self.epoch_claim.is_borne_out(epoch, 0, self.round))
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
        if header.epoch > self.epoch {
            self.enter(header.epoch, members);
            return Received::NewEpoch;
        }
        if header.epoch < self.epoch {
            self.announce();
        }
        Received::Unchanged
    }

    /// Lets an agent that is joining enter an epoch that was opened for it. After a restart it may hear of epochs that it lived
    /// in and has forgotten, late or from a recording, and must not enter them with an empty ledger. One that its challenger
    /// opened, later than all it has heard of, is none of these: the challenger knew of no later epoch than the joiner did.
    fn consider(&mut self, epoch: u32, members: MemberSet) -> Received {
        let is_later = self.heard_epoch.is_none_or(|heard| epoch > heard);
        let is_for_us =
            members.contains(self.config.id) && self.admissions.is_offered(epoch % OPENERS, self.config.id);
        if !self.has_left && is_later && is_for_us {
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

    /// Who belongs to the first epoch.
    #[cfg_attr(microcontroller, inline(never))]
    pub(super) fn founders(&self) -> MemberSet {
        MemberSet::first(self.config.founders).unwrap_or_default()
    }

    /// Gives up members that were heard at any time and have been silent for too long since.
    pub(super) fn give_up_on_the_silent(&mut self) {
        let Some(patience) = self.config.give_up_after else { return };
        let mut members = self.members;
        for place in 0..self.peers.len() {
            let peer = self.peers.get(place);
            if peer.heard_at.is_some_and(|at| self.round.saturating_sub(at) > patience.get()) {
                members.remove(peer.sender);
            }
        }
        if members != self.members
            && let Some(next) = next_epoch(self.epoch, self.config.id)
        {
            self.enter(next, members);
        }
    }

    /// Starts the ledger of an epoch. An agent that is no member of it joins again.
    pub(super) fn enter(&mut self, epoch: u32, members: MemberSet) {
        let is_member = members.contains(self.config.id);
        let before = self.members;
        self.epoch = if is_member { epoch } else { 0 };
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
            let peer = self.peers.get_mut(place);
            peer.reset();
            // Who comes back has not been silent since.
            if members.contains(peer.sender) && !before.contains(peer.sender) {
                peer.heard_at = peer.heard_at.map(|_| self.round);
            }
        }
        self.encoder.begin_epoch(self.round);
        self.share_weights = self.current_share_weights();
        self.announce_until = self.round.saturating_add(ANNOUNCE_ROUNDS);
        self.outbox.has_members = true;
        self.outbox.has_data = true;
    }

    /// What this agent gives each round, given who belongs to its epoch.
    pub(super) fn current_share_weights(&self) -> ShareWeights {
        ShareWeights::new(self.config.self_weight, self.config.links.audience(self.config.id, &self.members))
    }
}
