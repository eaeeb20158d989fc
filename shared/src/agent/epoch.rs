//! Who belongs to the swarm, and since when.

use super::peers::Peers;
use super::{ALONE_ROUNDS, ANNOUNCE_ROUNDS, Agent, MemberSet, Received, Refusal};
use crate::ledger::{Arithmetic, ShareWeights};
use crate::problem::Problem;
use crate::wire::SCHEMA;
use crate::wire::frame::{DataHeader, Hello, MembersHeader};

impl<P, A, L, const WORDS: usize> Agent<P, A, L, WORDS>
where
    P: Problem<f32>,
    A: Arithmetic,
    L: Peers<A, WORDS>,
{
    /// Leaves the swarm: opens an epoch without this agent, and is silent but for telling so.
    pub fn leave(&mut self) {
        if self.is_joining() {
            return;
        }
        let mut members = self.members;
        members.remove(self.config.id);
        self.has_left = true;
        self.enter(self.epoch.saturating_add(1), members);
    }

    /// A broadcast of another epoch: it cannot count, but tells who is behind.
    pub(super) fn receive_other_epoch(&mut self, header: DataHeader) -> Received {
        if self.is_joining() {
            self.heard_epoch = self.heard_epoch.max(Some(header.epoch));
            self.round = self.round.max(header.round);
            self.alone_since = self.round;
        } else if header.epoch < self.epoch {
            self.announce_until = self.announce_until.max(self.round.saturating_add(2));
            self.outbox.has_members = true;
        }
        Received::OtherEpoch
    }

    /// Somebody without a ledger asks to be let in: it needs an epoch above every one it has heard of.
    pub(super) fn receive_hello(&mut self, hello: &Hello) -> Received {
        if hello.schema != SCHEMA {
            return Received::Refused(Refusal::Schema { theirs: hello.schema });
        }
        let shape = (usize::from(hello.x), usize::from(hello.y), hello.x_is_local);
        if shape != (self.shape.x, self.shape.y, self.shape.x_is_local) {
            return Received::Refused(Refusal::Shape);
        }
        if self.is_joining() {
            return self.found_anew();
        }
        let mut members = self.members;
        if !members.insert(hello.sender) {
            return Received::Refused(Refusal::NotMember);
        }
        if hello.epoch >= self.epoch || members != self.members {
            // An epoch number is spent only by an honest restart; at the end of their range there is no next one.
            let Some(next) = self.epoch.max(hello.epoch).checked_add(1) else {
                return Received::Refused(Refusal::NotMember);
            };
            self.enter(next, members);
            return Received::NewEpoch;
        }
        self.announce_until = self.announce_until.max(self.round.saturating_add(2));
        self.outbox.has_members = true;
        Received::Unchanged
    }

    /// Somebody tells who belongs to an epoch.
    pub(super) fn receive_members(&mut self, header: MembersHeader, set: &[u8]) -> Received {
        let Some(members) = MemberSet::from_bytes(set) else {
            return Received::Refused(Refusal::NotMember);
        };
        if self.is_joining() {
            return self.consider(header.epoch, members);
        }
        if header.epoch > self.epoch || (header.epoch == self.epoch && members.outranks(&self.members)) {
            self.enter(header.epoch, members);
            return Received::NewEpoch;
        }
        if header.epoch < self.epoch {
            self.announce_until = self.announce_until.max(self.round.saturating_add(2));
            self.outbox.has_members = true;
        }
        Received::Unchanged
    }

    /// Whether an agent that is joining can enter this epoch. After a restart the first epoch it hears of may be one
    /// that it lived in and has forgotten; any later one began without its ledger.
    fn consider(&mut self, epoch: u32, members: MemberSet) -> Received {
        let is_new_to_us = match self.heard_epoch {
            None => self.config.boot == 1,
            Some(heard) => epoch > heard,
        };
        if !self.has_left && members.contains(self.config.id) && is_new_to_us {
            self.enter(epoch, members);
            return Received::NewEpoch;
        }
        self.heard_epoch = self.heard_epoch.max(Some(epoch));
        self.alone_since = self.round;
        Received::Unchanged
    }

    /// Somebody else asks to be let in, and nobody has spoken for long who could: then all have lost their memory, and the
    /// swarm begins as it did first, with its founders. Its epoch is one that no earlier start of this agent was in, for
    /// somebody out of reach may remember those.
    fn found_anew(&mut self) -> Received {
        if self.has_left || self.round < self.alone_since.saturating_add(ALONE_ROUNDS) {
            return Received::Unchanged;
        }
        let before = self.heard_epoch.unwrap_or(0).max(self.config.boot.min(u16::MAX.into()) << 16);
        let mut members = self.founders();
        members.insert(self.config.id);
        self.enter(before.saturating_add(1), members);
        Received::NewEpoch
    }

    /// Who belongs to the first epoch.
    #[cfg_attr(microcontroller, inline(never))]
    pub(super) fn founders(&self) -> MemberSet {
        MemberSet::first(self.config.founders).unwrap_or_default()
    }

    /// Gives up members that were heard in this epoch and have been silent for too long.
    pub(super) fn give_up_on_the_silent(&mut self) {
        let patience = self.config.give_up_after;
        if patience == 0 {
            return;
        }
        let mut members = self.members;
        for peer in self.peers.as_slice() {
            let is_silent =
                peer.taken_round.is_some() && self.round - peer.heard_at.min(self.round) > patience;
            if is_silent {
                members.remove(peer.sender);
            }
        }
        if members != self.members {
            self.enter(self.epoch.saturating_add(1), members);
        }
    }

    /// Starts the ledger of an epoch. An agent that is no member of it joins again.
    pub(super) fn enter(&mut self, epoch: u32, members: MemberSet) {
        let is_member = members.contains(self.config.id);
        self.epoch = if is_member { epoch } else { 0 };
        self.heard_epoch = Some(epoch);
        self.members = members;
        self.t = self.d;
        self.before = self.d;
        self.sigma = [A::Word::default(); WORDS];
        self.carry = [A::Carry::default(); WORDS];
        for peer in self.peers.as_mut_slice() {
            peer.reset();
        }
        self.encoder.begin_epoch(self.round);
        self.share_weights = self.current_share_weights();
        self.announce_until = self.round.saturating_add(ANNOUNCE_ROUNDS);
        self.outbox.has_members = true;
        self.outbox.has_data = true;
    }

    /// What this agent gives each round, given who belongs to its epoch.
    pub(super) fn current_share_weights(&self) -> ShareWeights {
        let others = self.members.len().saturating_sub(1);
        let audience = match self.config.audience {
            0 => others,
            known => others.min(u32::from(known)),
        };
        ShareWeights::new(self.config.self_weight, audience)
    }
}
