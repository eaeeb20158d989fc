//! The part of a swarm that runs on boards, step by step beside its shadows.

use super::AgentSwarm;
use crate::swarm::Halt;
use fabswarm_shared::ledger::Arithmetic;

impl<A: Arithmetic, const WORDS: usize> AgentSwarm<A, WORDS> {
    /// Waits until boards have said what they have to say, and stops those that freeze.
    pub(super) fn begin_on_boards(&mut self) -> Result<(), Halt> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        remote.begin_round()?;
        let frozen = (0..self.posts.len()).filter(|&agent| self.air.is_frozen(agent, self.slot));
        frozen.for_each(|agent| remote.freeze(agent));
        Ok(())
    }

    /// Which agents run on boards that are up.
    pub(super) fn on_boards(&self) -> Vec<usize> {
        let is_there = |agent: &usize| {
            self.is_running(*agent) && self.remote.as_ref().is_some_and(|remote| remote.is_remote(*agent))
        };
        (0..self.posts.len()).filter(is_there).collect()
    }

    /// Lets the boards' own clocks strike, as often as `strikes` says, and answers what each board said.
    pub(super) fn strike_on_boards(&mut self, strikes: &[u32]) -> Result<Vec<Vec<Vec<u8>>>, Halt> {
        let mut said = vec![Vec::new(); self.posts.len()];
        self.begin_on_boards()?;
        let mut outcome = Ok(());
        for strike in 0..strikes.iter().copied().max().unwrap_or(0) {
            let mut striking = self.on_boards();
            striking.retain(|&agent| strikes[agent] > strike);
            if let Some(remote) = &mut self.remote {
                remote.end_round(&striking);
            }
            for &agent in &striking {
                outcome = outcome.and(self.end_round(agent));
            }
            if let Some(remote) = &mut self.remote {
                remote.begin_round()?;
            }
            for agent in striking {
                self.speak_as_shadow(agent);
                let frames = self.remote.as_ref().map_or(&[][..], |remote| remote.frames(agent));
                said[agent].extend_from_slice(frames);
            }
        }
        outcome.map(|()| said)
    }

    /// Lets a shadow say what its board says, so that it goes the same way; nobody hears it.
    pub(super) fn speak_as_shadow(&mut self, agent: usize) {
        while let Ok(Some(_)) = self.posts[agent].agent.poll_frame(&mut self.buffer) {}
    }
}
