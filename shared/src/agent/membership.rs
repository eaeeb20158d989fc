//! An agent's part in its swarm: the epoch it is in and with whom, the round that it is, and what it has to send about that.
//!
//! Nothing in here is a float. Frames come in, and frames on members go out. Where a frame, or a round that ends, opens an epoch or moves
//! the agent to another round, the ledger must follow: methods return that.

mod admission;
mod frames;
mod reception;
mod rumour;
mod silence;

use super::outbox::{Due, Outbox};
use super::rounds::{FrameAge, RoundSync};
use super::state_field::NUMBERS;
use super::{Config, Epoch, Error, MemberSet, Received, Refusal};
use crate::corroboration::Claim;
use admission::Admissions;
use rumour::Rumour;
use silence::Silence;

/// Rounds for which a new epoch is announced every round.
const ANNOUNCE_ROUNDS: u32 = 30;
/// Rounds from one later announcement to the next, for agents that were away.
const ANNOUNCE_EVERY: u32 = 16;
/// Rounds without news of an epoch after which an agent that joins assumes that there is none.
pub(super) const ALONE_ROUNDS: u32 = 4 * ANNOUNCE_EVERY;
/// Rounds in which an agent asks for another part of the swarm that it has heard of, at least.
const RUMOUR_ROUNDS: u32 = 16;

/// The epoch and the round of an agent.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    pub(super) rounds: RoundSync,
    pub(super) outbox: Outbox,
    pub(super) epoch: Epoch,
    /// The members of its epoch or, while it is joining, of the highest that it heard of.
    pub(super) members: MemberSet,
    /// The highest epoch it was in or, while it is joining, heard of.
    pub(super) heard_epoch: Option<Epoch>,
    has_left: bool,
    announce_until: u32,
    /// The round in which it last heard of an epoch while it is waiting.
    pub(super) alone_since: u32,
    rumour: Rumour,
    pub(super) silence: Silence,
    admissions: Admissions,
    epoch_claim: Claim,
}

impl Membership {
    /// Before the first [`Membership::reset`].
    #[inline(always)]
    pub(super) fn blank() -> Self {
        Self {
            rounds: RoundSync::known(0),
            outbox: Outbox::default(),
            epoch: Epoch::NONE,
            members: MemberSet::NOBODY,
            heard_epoch: None,
            has_left: false,
            announce_until: 0,
            alone_since: 0,
            rumour: Rumour::NONE,
            silence: Silence::NONE,
            admissions: Admissions::default(),
            epoch_claim: Claim::default(),
        }
    }

    /// Begins round 0, in the first epoch if the agent is a founder at its first start.
    pub(super) fn reset(&mut self, config: &Config) {
        let founders = founders(config);
        let is_founding = config.boot <= 1 && founders.contains(config.id);
        let is_pending = !is_founding && config.is_lock_step();
        self.rounds = if is_pending { RoundSync::pending(0, None) } else { RoundSync::known(0) };
        self.has_left = false;
        self.epoch_claim = Claim::default();
        self.admissions.clear();
        self.silence = Silence::NONE;
        self.enter(config.id, Epoch::FIRST, if is_founding { founders } else { MemberSet::NOBODY });
        (self.heard_epoch, self.announce_until, self.alone_since) = (None, 0, 0);
    }

    /// The numbers that are saved, as [`NUMBERS`] names them.
    pub(super) fn to_words(&self) -> [u32; NUMBERS.len()] {
        let [boot, founder, number] = self.epoch.to_words();
        let [heard_boot, heard_founder, heard_number] = self.heard_epoch.unwrap_or_default().to_words();
        let (round, until) = (self.rounds.own, self.announce_until);
        [round, until, boot, founder, number, heard_boot, heard_founder, heard_number]
    }

    /// Continues from what was saved. A lock-step swarm may have gone on since, unless there is nobody else in it.
    pub(super) fn restore(
        &mut self,
        config: &Config,
        words: [u32; NUMBERS.len()],
        members: MemberSet,
    ) -> Result<(), Error> {
        let [round, until, boot, founder, number, heard_boot, heard_founder, heard_number] = words;
        let epoch = |words| Epoch::from_words(words).ok_or(Error::Memory);
        self.epoch = epoch([boot, founder, number])?;
        let heard = epoch([heard_boot, heard_founder, heard_number])?;
        self.heard_epoch = Some(heard).filter(|&epoch| epoch != Epoch::NONE);
        (self.members, self.announce_until, self.alone_since) = (members, until, round);
        let is_single = members.len() <= 1 && !self.is_joining();
        self.rounds = match is_single || !config.is_lock_step() {
            true => RoundSync::known(round),
            false => RoundSync::pending(round, if self.is_joining() { None } else { Some(0) }),
        };
        self.outbox.set(Due::Data, true);
        self.rumour = Rumour::NONE;
        Ok(())
    }

    pub(super) fn is_joining(&self) -> bool {
        self.epoch == Epoch::NONE
    }

    /// Whether it takes no part in rounds: it has no ledger, or does not know the round.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_joining() || self.rounds.is_pending
    }

    /// Whether it waits and has heard nobody for long who takes part. Only then does it let other joiners in, or go on by itself.
    fn is_alone(&self) -> bool {
        self.rounds.own >= self.alone_since.saturating_add(ALONE_ROUNDS)
    }

    /// Starts an epoch. An agent that is no member of it joins again.
    pub(super) fn enter(&mut self, id: u16, epoch: Epoch, members: MemberSet) {
        if self.is_joining() {
            self.silence = Silence::NONE;
        }
        self.epoch = if members.contains(id) { epoch } else { Epoch::NONE };
        self.rumour = Rumour::NONE;
        self.admissions.withdraw(id);
        (self.heard_epoch, self.alone_since) = (Some(epoch), self.rounds.own);
        self.members = members;
        self.announce_until = self.rounds.own.saturating_add(ANNOUNCE_ROUNDS);
        self.outbox.set(Due::Members, true);
        self.outbox.set(Due::Data, true);
    }

    /// Leaves the swarm: opens an epoch without this agent, which sends no data or hello frames from then on. Returns whether it was in.
    pub(super) fn leave(&mut self, id: u16) -> bool {
        let Some(next) = self.epoch.next(id).filter(|_| !self.is_joining()) else { return false };
        let mut members = self.members;
        members.remove(id);
        self.has_left = true;
        self.enter(id, next, members);
        true
    }

    /// Ends a round of an agent that takes part: gives up members that nobody has heard for too long, and returns whether that opened
    /// an epoch.
    pub(super) fn evict_silent_members(&mut self, config: &Config) -> bool {
        let Some(silent_rounds) = config.give_up_after else { return false };
        let mut members = self.members;
        for id in (0..MemberSet::CAPACITY as u16).filter(|&id| self.silence.of(id) > silent_rounds.get()) {
            members.remove(id);
        }
        let next = self.epoch.next(config.id).filter(|_| members != self.members);
        if let Some(next) = next {
            self.enter(config.id, next, members);
        }
        members.remove(config.id);
        self.silence.end_round(&members);
        next.is_some()
    }

    /// Lets an agent that knows its epoch, but nobody who could tell the round, take its own for the swarm's.
    pub(super) fn settle_alone(&mut self) {
        if self.rounds.is_pending && !self.is_joining() && self.is_alone() {
            self.rounds.settle();
        }
    }

    /// Goes on to the next round.
    pub(super) fn end_round(&mut self) {
        self.rounds.own = self.rounds.own.saturating_add(1);
        let alone_for = self.rounds.own.saturating_sub(self.alone_since);
        let is_lost = self.rounds.is_pending && self.is_joining() && self.is_alone();
        if is_lost && alone_for.is_multiple_of(2 * ALONE_ROUNDS) {
            // The round that it followed is not the swarm's: it was recorded, or a swarm was founded in an earlier one.
            self.rounds.doubt(None);
        }
    }

    /// Lists what is to be sent in a round that begins. Frames of the senders `early` waited for it: then the swarm is one round ahead.
    pub(super) fn begin_round(&mut self, has_data: bool, early: impl Iterator<Item = u16>) {
        let (round, is_taking_part) = (self.rounds.own, !self.is_waiting());
        let is_due = round < self.announce_until
            || (self.epoch > Epoch::FIRST && round.is_multiple_of(ANNOUNCE_EVERY));
        self.rumour.begin_round();
        let is_asking = self.rumour.is_alive() && is_taking_part;
        self.outbox = Outbox::default();
        self.outbox.set(Due::Members, is_due && (self.is_joining() || !self.rounds.is_pending));
        self.outbox.set(Due::Admission, self.admissions.begin_round(round));
        self.outbox.set(Due::Data, has_data);
        self.outbox.set(Due::Hello, is_asking);
        self.outbox.set(Due::Rumour, is_asking);
        self.outbox.set(Due::Silence, is_taking_part);
        let mut is_behind = false;
        for sender in early {
            self.silence.shorten(sender, 0);
            is_behind = true;
        }
        if is_behind {
            self.rumour.catch_up(1);
        }
    }

    /// Goes on from `round` without having lived through the rounds before it.
    pub(super) fn jump_to(&mut self, round: u32) {
        let skipped = round.saturating_sub(self.rounds.own);
        self.rounds.own = round;
        self.catch_up(skipped);
    }

    fn catch_up(&mut self, rounds: u32) {
        self.rumour.catch_up(rounds);
        self.outbox.set(Due::Data, true);
    }

    /// Goes on from the round that was found to be the swarm's. Returns whether a ledger must follow.
    fn synchronise(&mut self) -> bool {
        let before = self.rounds.own;
        self.rounds.find();
        self.admissions.clear();
        self.alone_since = self.rounds.own;
        if !self.is_joining() {
            self.catch_up(self.rounds.own.saturating_sub(before));
        }
        !self.is_joining()
    }
}

/// The members of the first epoch.
#[cfg_attr(microcontroller, inline(never))]
fn founders(config: &Config) -> MemberSet {
    MemberSet::first(config.founders).unwrap_or_default()
}
