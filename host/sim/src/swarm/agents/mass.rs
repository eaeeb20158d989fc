//! Mass on its way from one agent to another.

use super::AgentSwarm;
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
        let is_present = |agent: usize| !self.air.is_down(agent, self.slot.saturating_sub(1));
        let is_in_epoch = |agent: usize| epoch != Epoch::NONE && self.agents[agent].agent.epoch() == epoch;
        let mut waiting = vec![vec![0; words]; self.agents.len()];
        let mut owed = waiting.clone();
        for sender in (0..self.agents.len()).filter(|&sender| is_in_epoch(sender)) {
            let agent = &self.agents[sender].agent;
            ledger::add(&mut waiting[sender], agent.sigma(), agent.audience() as i32);
            let is_gone = |receiver: &usize| {
                *receiver != sender
                    && agent.members().contains(*receiver as u16)
                    && self.may_collect(sender, *receiver)
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
}

fn largest(sums: &[Vec<i32>]) -> f64 {
    sums.iter().flatten().map(|&word| f64::from(ledger::value(word)).abs()).fold(0.0, f64::max)
}
