//! The rounds of an agent.

use super::peers::Peers;
use super::{Agent, Epoch, Fault};
use crate::problem::Problem;

/// How a round went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl<P: Problem<f32>, L: Peers<WORDS>, const WORDS: usize> Agent<P, L, WORDS> {
    /// Ends the round: pull, gradient, push. Frames of the next round that came early count from here on.
    #[cfg_attr(microcontroller, inline(never))]
    pub fn end_round(&mut self) -> Report {
        let (round, epoch) = (self.round(), self.epoch());
        let heard = self.ledger.peers.active().filter(|(_, reception)| reception.is_fresh).count() as u16;
        if self.fault.is_none() {
            self.membership.settle_alone();
            if !self.is_waiting() {
                self.fault = self.ledger.end_round(&self.config, &self.problem, round, heard).err();
                if self.membership.evict_silent_members(&self.config) {
                    self.begin_epoch();
                }
            }
            self.membership.end_round();
            self.begin_round();
        }
        Report { round, epoch, heard, fault: self.fault }
    }

    /// Ends the round on a beat that ends it for the whole swarm. An agent that then finds frames of the next round waiting is one
    /// round behind, as after a short power cut, and ends that one too: otherwise all its frames would come too late.
    pub fn end_on_beat(&mut self) -> Report {
        let report = self.end_round();
        if self.is_behind() { self.end_round() } else { report }
    }

    /// Whether frames of this round waited for it to begin: then the swarm is one round ahead.
    pub fn is_behind(&self) -> bool {
        self.ledger.peers.active().any(|(_, reception)| reception.is_heard)
    }

    /// Starts a round: gives this round's share away, if there is one, and takes what came early.
    pub(super) fn begin_round(&mut self) {
        let (has_news, fault) = self.ledger.begin_round(&self.config, self.round(), self.is_waiting());
        self.fault = self.fault.or(fault);
        let early = self.ledger.peers.active().filter(|(_, reception)| reception.is_heard);
        self.membership.begin_round(has_news, early.map(|(peer, _)| peer.sender));
    }

    /// Starts the ledger of the epoch that the agent has entered.
    #[cfg_attr(microcontroller, inline(never))]
    pub(super) fn begin_epoch(&mut self) {
        self.ledger.begin_epoch(&self.config, &self.membership.members, self.membership.rounds.own);
    }
}
