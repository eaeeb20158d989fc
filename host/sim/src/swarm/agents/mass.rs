//! Mass on its way from one agent to another, and mass that was made or lost.

use super::AgentSwarm;
use crate::swarm::books::Imbalance;
use fabswarm_shared::agent::{Agent, Epoch};
use fabswarm_shared::ledger;

/// Mass that was given and not collected yet, in the unit of gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UncollectedMass {
    /// The largest word of `Σ_i (σ_j − ρ_ij)` over the audience of any sender j.
    pub waiting: f64,
    /// The largest word of the part of that sum that is for members that are gone: down, or not in the sender's epoch.
    pub owed_to_gone: f64,
}

impl<const WORDS: usize> AgentSwarm<WORDS> {
    /// The mass that waits on the links of the highest epoch.
    pub fn uncollected_mass(&self) -> UncollectedMass {
        let words = self.shape.exchanged().len();
        let epoch = self.agents().map(Agent::epoch).max().unwrap_or_default();
        let is_present = |agent: usize| !self.air.outages().is_down(agent, self.slot.saturating_sub(1));
        let is_in_epoch = |agent: usize| epoch != Epoch::NONE && self.agents[agent].agent.epoch() == epoch;
        let mut waiting = vec![vec![0; words]; self.agents.len()];
        let mut owed = waiting.clone();
        for sender in (0..self.agents.len()).filter(|&sender| is_in_epoch(sender)) {
            let agent = &self.agents[sender].agent;
            ledger::add(&mut waiting[sender], agent.sigma(), agent.audience() as i32);
            let is_gone = |receiver: &usize| {
                *receiver != sender
                    && agent.members().contains(*receiver as u16)
                    && self.books.rules.may_collect(sender as u16, *receiver as u16)
                    && !(is_in_epoch(*receiver) && is_present(*receiver))
            };
            let gone = (0..self.agents.len()).filter(is_gone).count();
            ledger::add(&mut owed[sender], agent.sigma(), gone as i32);
        }
        for receiver in (0..self.agents.len()).filter(|&receiver| is_in_epoch(receiver)) {
            for collection in self.agents[receiver].agent.collected() {
                let sender = usize::from(collection.sender);
                ledger::add(&mut waiting[sender], collection.rho, -1);
                if !is_present(receiver) {
                    ledger::add(&mut owed[sender], collection.rho, -1);
                }
            }
        }
        UncollectedMass { waiting: largest(&waiting), owed_to_gone: largest(&owed) }
    }

    /// `Σt + Σ_j Σ_{i ∈ audience(j)} (σ_j − ρ_ij) − Σd`, word by word: mass that was made or lost.
    ///
    /// Books that hold say that it is zero, and it is not added up again: the vector is empty then. Once they
    /// broke it is never zero. A running sum that its sender never had changes nothing in this sum, since it brings what it is
    /// ahead of the sender back with the next genuine frame; so its distance from the sender's present one is added.
    pub fn defect(&self) -> Vec<f64> {
        let defect = self.imbalance.map(|imbalance| self.defect_of(imbalance)).unwrap_or_default();
        defect.into_iter().map(|word| f64::from(ledger::value(word))).collect()
    }

    fn defect_of(&self, imbalance: Imbalance) -> Vec<i32> {
        let agent = |id: u16| self.agents.get(usize::from(id)).map(|own| &own.agent);
        let mut defect =
            self.unaccounted(agent(imbalance.agent()).map_or(Epoch::NONE, |agent| agent.epoch()));
        if let Imbalance::Invented { sender, receiver, .. } | Imbalance::Backwards { sender, receiver, .. } =
            imbalance
            && let (Some(from), Some(to)) = (agent(sender), agent(receiver))
            && let Some(collection) = to.collected().find(|collection| collection.sender == sender)
        {
            ledger::add(&mut defect, collection.rho, 1);
            ledger::add(&mut defect, from.sigma(), -1);
        }
        // The right sum of the wrong round, say.
        if defect.iter().all(|word| *word == 0) {
            defect[0] = 1;
        }
        defect
    }

    /// The trackers of an epoch and the mass that waits for those who may collect it, less the gradients.
    fn unaccounted(&self, epoch: Epoch) -> Vec<i32> {
        let mut sum = vec![0; self.shape.exchanged().len()];
        let of_epoch = |(_, agent): &(usize, &_)| Agent::epoch(*agent) == epoch && epoch != Epoch::NONE;
        for (id, agent) in self.agents().enumerate().filter(of_epoch) {
            ledger::add(&mut sum, agent.trackers(), 1);
            ledger::add(&mut sum, agent.tracked_gradients(), -1);
            let listeners = self.books.rules.listeners(id as u16, agent.members());
            ledger::add(&mut sum, agent.sigma(), listeners as i32);
            let genuine =
                agent.collected().filter(|taken| self.books.rules.may_collect(taken.sender, id as u16));
            genuine.for_each(|taken| ledger::add(&mut sum, taken.rho, -1));
        }
        sum
    }
}

fn largest(sums: &[Vec<i32>]) -> f64 {
    sums.iter().flatten().map(|&word| f64::from(ledger::value(word)).abs()).fold(0.0, f64::max)
}
