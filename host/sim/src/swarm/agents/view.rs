//! The part of a view that agents themselves show.

use super::AgentSwarm;
use crate::swarm::view::MOST_AGENTS_IN_FULL;
use crate::swarm::{SwarmView, ViewRequest};

impl<const WORDS: usize> AgentSwarm<WORDS> {
    pub(super) fn show(&self, request: &ViewRequest) -> SwarmView {
        let mut view = SwarmView::of_air(&self.air, self.slot, request);
        view.add_deviations(&self.decisions(), self.shape.words(), self.shape.exchanged());
        for (own, seen) in self.agents.iter().zip(&mut view.agents) {
            seen.round = own.agent.round().into();
            seen.epoch = Some(own.agent.epoch().number);
            seen.boot = Some(own.boot);
            seen.digest = Some(own.agent.digest());
        }
        if let Some(remote) = &self.remote {
            for (agent, seen) in view.agents.iter_mut().enumerate() {
                seen.board = remote.board(agent);
            }
        }
        let is_in_full = self.agents.len() <= MOST_AGENTS_IN_FULL;
        let mut links = &mut view.links[..];
        for (receiver, own) in self.agents.iter().enumerate() {
            let count = links.iter().take_while(|link| link.receiver as usize == receiver).count();
            let (own_links, others) = links.split_at_mut(count);
            links = others;
            if !is_in_full && !request.agents.contains(&receiver) {
                continue;
            }
            // Both are in ascending order of senders.
            let mut collected = own.agent.collected().peekable();
            for link in own_links {
                while collected.next_if(|known| u32::from(known.sender) < link.sender).is_some() {}
                let known = collected.next_if(|known| u32::from(known.sender) == link.sender);
                link.collected_round = known.map(|known| known.round);
            }
        }
        view
    }
}
