//! Agents that stop and come back.

use super::{AgentSwarm, BoardChange, start};
use crate::swarm::SwarmError;
use crate::swarm::books::BrokenBooks;
use fabswarm_shared::agent::read_from;

impl<const WORDS: usize> AgentSwarm<WORDS> {
    /// Takes agents down whose boards are gone, and starts those again whose boards are back.
    fn apply_board_changes(&mut self) -> Result<(), SwarmError> {
        let changes = self.remote.as_mut().map(|remote| remote.take_changes()).unwrap_or_default();
        for change in changes {
            match change {
                BoardChange::Lost { agent } => {
                    self.air.set_lost(agent, true);
                    self.agents[agent].saved = None;
                }
                BoardChange::Returned { agent, boot } => {
                    self.air.set_lost(agent, false);
                    self.restart(agent, boot)?;
                }
            }
        }
        Ok(())
    }

    /// Starts an agent and its board again.
    fn restart(&mut self, agent: usize, boot: u32) -> Result<(), SwarmError> {
        if let Some(remote) = &mut self.remote {
            remote.restart(agent, self.slot)?;
        }
        let own = &mut self.agents[agent];
        own.boot = boot;
        own.has_sent = false;
        own.refused = 0;
        own.seal.restart(boot, own.saved.as_ref().map(|saved| &*saved.boots));
        // The same scenario made this agent once; it does so again.
        if let Ok(mut started) = start(&self.task, &self.setup, &self.receptions, agent, own.boot) {
            if let Some(saved) = &own.saved
                && started.restore(read_from(&saved.state)).is_err()
            {
                return Ok(());
            }
            *own.agent = started;
            let reopened = self.books.reopen(own.agent.id(), own.agent.epoch(), own.agent.collected());
            reopened.map_err(|what| BrokenBooks { round: u64::from(self.slot) + 1, what })?;
        }
        Ok(())
    }

    /// Applies the outages of this slot: resumes, crashes and restarts, then suspensions.
    pub(super) fn apply_outages(&mut self) -> Result<(), SwarmError> {
        self.apply_board_changes()?;
        if let Some(remote) = &mut self.remote {
            let ended = |agent: &usize| {
                let before = self.slot.checked_sub(1);
                before.is_some_and(|before| self.air.outages().is_frozen(*agent, before))
                    && !self.air.outages().is_frozen(*agent, self.slot)
            };
            (0..self.agents.len()).filter(ended).for_each(|agent| remote.thaw(agent));
        }
        for crash in self.air.outages().crashes(self.slot) {
            if let Some(remote) = &mut self.remote {
                remote.kill(crash.agent, crash.keeps_memory)?;
            }
            if !crash.keeps_memory {
                self.agents[crash.agent].saved = None;
            }
        }
        // An agent that crashes again in the same slot does not start, or starts only once.
        let is_back = |agent: &usize| !self.air.outages().is_down(*agent, self.slot);
        let mut restarting: Vec<_> =
            self.air.outages().restarts(self.slot).map(|crash| crash.agent).filter(is_back).collect();
        restarting.dedup();
        for agent in restarting {
            self.restart(agent, self.agents[agent].boot + 1)?;
        }
        let mut frozen =
            (0..self.agents.len()).filter(|&agent| self.air.outages().is_frozen(agent, self.slot));
        match &mut self.remote {
            Some(remote) => frozen.try_for_each(|agent| remote.freeze(agent)),
            None => Ok(()),
        }
    }
}
