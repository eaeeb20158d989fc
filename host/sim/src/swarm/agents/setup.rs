//! Configuration of a swarm of agents.

use crate::sealing::SwarmKey;
use fabswarm_shared::agent::{Config, Links, MemberSet};

/// Configuration of a swarm of agents.
#[derive(Clone, Debug)]
pub struct AgentSwarmConfig {
    /// Configuration common to all agents; see [`AgentSwarmConfig::config_of`].
    pub config: Config,
    /// The agents that may ever collect from each agent, where these are not all.
    pub audiences: Option<Vec<MemberSet>>,
    /// The swarm's key, where frames are sealed.
    pub key: Option<SwarmKey>,
    /// Clock error in free-running mode: rates are uniform in 1 ± this.
    pub clock_spread: f64,
    /// Forged fragments that an intruder sends among those of every frame; with 0 frames travel whole.
    pub forged_fragments: u32,
    /// Seed of the clocks, and of what an intruder forges.
    pub seed: u64,
}

impl AgentSwarmConfig {
    /// The configuration of one agent at one of its starts.
    pub fn config_of(&self, agent: usize, boot: u32) -> Config {
        Config { id: agent as u16, boot, links: self.links_of(agent), ..self.config }
    }

    fn links_of(&self, agent: usize) -> Links {
        let Some(audiences) = &self.audiences else { return Links::Everybody };
        let mut senders = MemberSet::default();
        for (sender, audience) in audiences.iter().enumerate() {
            if audience.contains(agent as u16) {
                senders.insert(sender as u16);
            }
        }
        Links::Known { audience: audiences.get(agent).copied().unwrap_or_default(), senders }
    }
}
