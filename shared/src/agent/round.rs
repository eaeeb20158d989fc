//! The rounds of an agent.

use super::peers::{Peers, Reception};
use super::{ALONE_ROUNDS, ANNOUNCE_EVERY, Agent, Epoch, Fault, FaultCause, Outbox, RoundSync, digest};
use crate::fab::{Order, gather, pull_weight};
use crate::ledger;
use crate::linear::{first_exception, scaled};
use crate::problem::Problem;
use crate::wire::payload::Width;

/// How a round went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Report {
    /// The round that ended.
    pub round: u32,
    /// The epoch it ended in.
    pub epoch: Epoch,
    /// How many others were heard.
    pub heard: u16,
    /// The fault that stopped the agent, if this round did.
    pub fault: Option<Fault>,
}

impl<P, L, const WORDS: usize> Agent<P, L, WORDS>
where
    P: Problem<f32>,
    L: Peers<WORDS>,
{
    /// Ends the round: pull, gradient, push. Frames of the next round that came early count from here on.
    #[cfg_attr(microcontroller, inline(never))]
    pub fn end_round(&mut self) -> Report {
        let (round, epoch) = (self.round, self.epoch);
        let heard = self.receptions().filter(|reception| reception.is_fresh).count() as u16;
        if self.fault.is_none() {
            if self.sync.is_pending && !self.is_joining() && self.is_alone() {
                // Nobody is left who could tell the round: its own is as good as any.
                self.sync = RoundSync::known();
            }
            if !self.is_waiting() {
                self.fault = self.update(heard).err();
                self.give_up_on_the_silent();
            }
            self.round = self.round.saturating_add(1);
            let alone_for = self.round.saturating_sub(self.alone_since);
            let is_lost = self.sync.is_pending && self.is_joining() && self.is_alone();
            if is_lost && alone_for.is_multiple_of(2 * ALONE_ROUNDS) {
                // The round that it followed is not the swarm's: it was recorded, or a swarm was founded in an earlier one.
                self.sync = RoundSync::pending(None);
            }
            self.begin_round();
        }
        Report { round, epoch, heard, fault: self.fault }
    }

    /// Ends the round on a beat that ends it for the whole swarm. Whoever then finds frames of the next round waiting is one
    /// round behind, as after a short power cut, and ends that one too: otherwise all its frames would come too late.
    pub fn end_on_beat(&mut self) -> Report {
        let report = self.end_round();
        if self.is_behind() { self.end_round() } else { report }
    }

    /// Whether frames of this round waited for it to begin: then the swarm is one round ahead.
    pub fn is_behind(&self) -> bool {
        self.receptions().any(|reception| reception.is_heard)
    }

    /// Receptions of this round, in ascending order of senders.
    fn receptions(&self) -> impl Iterator<Item = &Reception<WORDS>> {
        (0..self.peers.listed()).map(|index| self.peers.listed_at(index).1)
    }

    /// A digest of round, epoch, decision, gradient, trackers, running sum and the direction of its descent. What it leaves
    /// out (remainders, what was taken of others, members) shows in one of these within a few rounds; [`Agent::save`] has all
    /// of it.
    pub fn digest(&self) -> u32 {
        let words = self.exchanged();
        let header = [self.round].into_iter().chain(self.epoch.to_words());
        let decision = self.decision().iter().chain(self.gradient()).map(|word| word.to_bits());
        let ledger = self.t[..words].iter().chain(&self.sigma[..words]).map(|&word| word as u32);
        let accumulator = self.accumulator().iter().map(|word| word.to_bits());
        digest::of(header.chain(decision).chain(ledger).chain(accumulator))
    }

    /// Algorithm 1 for one agent, on what it heard.
    fn update(&mut self, heard: u16) -> Result<(), Fault> {
        self.remember_what_was_sent()?;
        let exchanged = self.shape.exchanged();
        let words = exchanged.len();

        if self.config.phases.pulls(self.round) {
            let peers = &self.peers;
            let fresh = (0..peers.listed()).map(|index| peers.listed_at(index).1);
            let fresh = fresh.filter(|reception| reception.is_fresh);
            let sums = &mut self.sent[exchanged.clone()];
            gather::<1, _>(sums, fresh.map(|reception: &Reception<WORDS>| &reception.v[..words]));
            scaled(pull_weight(usize::from(heard)), sums, &mut self.v[exchanged.clone()]);
        }
        match self.config.order {
            // The exchanged words have been averaged already; the others have been stepped.
            Order::AdaptFirst => {
                self.v[..exchanged.start].copy_from_slice(&self.sent[..exchanged.start]);
            }
            Order::CombineFirst => {
                ledger::descend(&self.shape, &self.config.steps, &self.accumulator, &mut self.v);
            }
        }
        self.problem.project(&mut self.v[..self.shape.x]);
        if let Some(word) = first_exception(self.decision(), f32::is_finite) {
            return Err(Fault::in_decision(word));
        }
        self.take_gradient(self.round.saturating_add(1))
    }

    /// Tells the encoder what this round's frame held, before it changes.
    fn remember_what_was_sent(&mut self) -> Result<(), Fault> {
        if self.config.width == Width::Full {
            return Ok(());
        }
        let exchanged = self.shape.exchanged();
        let v = &self.sent[exchanged.clone()];
        self.encoder
            .end_round(self.round, v, &self.sigma[..v.len()])
            .map_err(|_| Fault::new(exchanged.start, FaultCause::Encoder))
    }

    /// Writes what this round's frame holds in the place of the decision.
    pub(super) fn fill_frame(&mut self) {
        self.sent = self.v;
        if self.config.order == Order::AdaptFirst {
            ledger::descend(&self.shape, &self.config.steps, &self.accumulator, &mut self.sent);
        }
    }

    /// Starts a round: gives this round's share away, if there is one, and takes what came early.
    pub(super) fn begin_round(&mut self) {
        let words = self.exchanged();
        for index in 0..self.peers.listed() {
            self.peers.listed_at_mut(index).1.begin_round();
        }
        let is_due = self.round < self.announce_until
            || (self.epoch > Epoch::FIRST && self.round.is_multiple_of(ANNOUNCE_EVERY));
        let has_members = is_due && (self.is_joining() || !self.sync.is_pending);
        let has_admission = self.admissions.begin_round(self.round);
        self.rumour.begin_round();
        let has_hello = self.rumour.is_alive() && !self.is_waiting();
        self.outbox = Outbox {
            has_data: true,
            has_members,
            has_admission,
            has_hello,
            has_rumour: has_hello,
            has_silence: !self.is_waiting(),
        };
        if self.is_waiting() {
            self.sent = self.v;
            return;
        }
        if self.config.phases.descends(self.round) {
            let (momentum, t) = (self.config.steps.momentum, &self.t[..words]);
            ledger::accumulate(&self.shape, momentum, &self.gradient, t, &mut self.accumulator);
        } else {
            self.accumulator = [0.0; WORDS];
        }
        self.fill_frame();
        if self.config.send_threshold > 0.0 {
            let v = &self.sent[self.shape.exchanged()];
            self.outbox.has_data = self.quiet.is_broken(v, self.config.send_threshold);
        }
        if self.fault.is_none() {
            self.fault = first_exception(&self.sent, f32::is_finite).map(Fault::in_decision);
        }
        if self.config.phases.pushes(self.round) {
            let granularity = match self.config.width {
                Width::Full => 0,
                _ => self.encoder.granularity(ledger::largest_share(&self.share_weights, &self.t[..words])),
            };
            ledger::give(
                &self.share_weights,
                granularity,
                &mut self.t[..words],
                &mut self.carry[..words],
                &mut self.sigma[..words],
            );
        }
        for index in 0..self.peers.listed() {
            let (peer, reception) = self.peers.listed_at_mut(index);
            reception.take_early(peer, self.round, words, &mut self.t[..words]);
            if reception.is_heard {
                peer.taken_at = self.round;
                self.silence.shorten(peer.sender, 0);
            }
        }
        if self.is_behind() {
            self.rumour.catch_up(1);
        }
        if self.config.width == Width::Full {
            self.peers.unlist_idle();
        }
    }
}
