//! By how much the books of a swarm are off.

use super::AgentSwarm;
use crate::swarm::books::Imbalance;
use fabswarm_shared::agent::{Agent, Epoch};
use fabswarm_shared::ledger;

impl<const WORDS: usize> AgentSwarm<WORDS> {
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
            ledger::add(&mut sum, agent.sigma(), self.listeners(id) as i32);
            let genuine = agent.collected().filter(|taken| self.may_collect(taken.sender.into(), id));
            genuine.for_each(|taken| ledger::add(&mut sum, taken.rho, -1));
        }
        sum
    }

    /// Whether mass of `sender` is meant for `receiver`.
    pub(super) fn may_collect(&self, sender: usize, receiver: usize) -> bool {
        let audiences = self.setup.audiences.as_ref();
        audiences.is_none_or(|audiences| {
            audiences.get(sender).is_some_and(|audience| audience.contains(receiver as u16))
        })
    }

    /// How many members of its epoch may collect from an agent.
    fn listeners(&self, sender: usize) -> u32 {
        let members = self.agents[sender].agent.members();
        let audience = self.setup.audiences.as_ref().and_then(|audiences| audiences.get(sender));
        let mut listeners = audience.map_or(*members, |audience| audience.common(members));
        listeners.remove(sender as u16);
        listeners.len()
    }
}
