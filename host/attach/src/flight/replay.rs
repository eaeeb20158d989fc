//! A flight again, on shadows: the same agents in this process take the same frames, and must come to the same bits.

use super::record::FlightEntry;
use fabswarm_shared::agent::{self, Agent, Origin, Received};
use fabswarm_shared::ledger::Exact;
use fabswarm_shared::provisioning::BOARD_WORDS;
use fabswarm_shared::wire::frame::Frame;
use fabswarm_sim::swarm::{AgentProblem, AgentSetup, HeapPeers};
use fabswarm_sim::task::Task;
use std::sync::Arc;

type Shadow = Agent<AgentProblem, Exact, HeapPeers<Exact, BOARD_WORDS>, BOARD_WORDS>;

/// Where a flight cannot be followed, or differs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlightFault {
    /// A board came to another state than its shadow.
    #[error(
        "the board of agent {agent} differs from its shadow after round {round}: digest {board:#010x} instead of {shadow:#010x}\n\
         help: suspect the board's memory, its arithmetic, or firmware from other sources"
    )]
    Digest {
        /// The agent.
        agent: u16,
        /// The first round that differs.
        round: u32,
        /// The board's digest.
        board: u32,
        /// The shadow's digest.
        shadow: u32,
    },
    /// A board took a frame that its shadow does not take.
    #[error(
        "the board of agent {agent} took the frame of agent {sender} in round {round}, and its shadow does not: {received}\n\
         help: suspect the board's memory, or firmware from other sources"
    )]
    NotTaken {
        /// The agent.
        agent: u16,
        /// Whose frame.
        sender: u16,
        /// In which round.
        round: u32,
        /// What the shadow did with it.
        received: String,
    },
    /// A board took a frame that nobody sent.
    #[error(
        "the board of agent {agent} took a frame of agent {sender} in round {round}, and that agent was not in that round\n\
         help: entries of the record are missing; a board that restarted cannot be followed"
    )]
    Unsent {
        /// The agent.
        agent: u16,
        /// Whose frame.
        sender: u16,
        /// In which round.
        round: u32,
    },
    /// A board has gone through a round of which nothing is known.
    #[error(
        "the board of agent {agent} ended round {round}, and its shadow is in round {shadow}\n\
         help: entries of the record are missing; a board that restarted cannot be followed"
    )]
    Gap {
        /// The agent.
        agent: u16,
        /// The board's round.
        round: u32,
        /// The shadow's.
        shadow: u32,
    },
    /// There is no such agent.
    #[error(
        "the record names agent {agent}, and the swarm has {agents} agents\nhelp: take scenario and record from the same run"
    )]
    Stranger {
        /// The agent.
        agent: u16,
        /// How many there are.
        agents: usize,
    },
}

/// Shadows that follow a flight, round by round.
#[derive(Debug)]
pub(super) struct FlightReplay {
    shadows: Vec<Shadow>,
    /// Each agent's data frame of the present round, once it is in that round.
    frames: Vec<Option<Vec<u8>>>,
    pub(super) checks: u64,
}

impl FlightReplay {
    pub(super) fn new(
        task: &Arc<Task<f32>>,
        setup: &AgentSetup,
        agents: usize,
    ) -> Result<Self, agent::Error> {
        let mut start = vec![0.0; task.shape().words()];
        task.start(&mut start);
        let shadow = |agent: usize| {
            let problem = AgentProblem::new(Arc::clone(task), agent);
            Shadow::new(setup.config_of(agent, 1), problem, &start, HeapPeers::default())
        };
        let shadows = (0..agents).map(shadow).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { frames: vec![None; agents], shadows, checks: 0 })
    }

    /// Takes the shadows through `round`, which these boards ended.
    pub(super) fn follow(&mut self, round: u32, entries: &[FlightEntry]) -> Result<(), FlightFault> {
        let agents = self.shadows.len();
        for entry in entries {
            let named = entry.senders.iter().chain([&entry.agent]);
            if let Some(&agent) = named.into_iter().find(|&&agent| usize::from(agent) >= agents) {
                return Err(FlightFault::Stranger { agent, agents });
            }
        }
        self.frames.fill(None);
        let mut waiting: Vec<(u16, u16)> = entries
            .iter()
            .flat_map(|entry| entry.senders.iter().map(|&sender| (entry.agent, sender)))
            .collect();
        // An agent that was behind joins the round with the first frame it takes, and only then sends its own.
        loop {
            self.write_frames(round);
            let before = waiting.len();
            let mut fault = None;
            waiting.retain(|&(agent, sender)| {
                let Some(frame) = &self.frames[usize::from(sender)] else { return true };
                match self.shadows[usize::from(agent)].receive(Origin::Clear, frame) {
                    Received::Taken => {}
                    received => {
                        let received = format!("{received:?}");
                        fault.get_or_insert(FlightFault::NotTaken { agent, sender, round, received });
                    }
                }
                false
            });
            if let Some(fault) = fault {
                return Err(fault);
            }
            if waiting.len() == before {
                break;
            }
        }
        if let Some(&(agent, sender)) = waiting.first() {
            return Err(FlightFault::Unsent { agent, sender, round });
        }
        for &FlightEntry { agent, digest: board, .. } in entries {
            let shadow = &mut self.shadows[usize::from(agent)];
            if shadow.round() != round {
                return Err(FlightFault::Gap { agent, round, shadow: shadow.round() });
            }
            shadow.end_round();
            self.checks += 1;
            let digest = shadow.digest();
            if digest != board {
                return Err(FlightFault::Digest { agent, round, board, shadow: digest });
            }
        }
        Ok(())
    }

    /// Writes the data frames of all agents that are in `round` and have not sent theirs.
    fn write_frames(&mut self, round: u32) {
        for (shadow, frame) in self.shadows.iter_mut().zip(&mut self.frames) {
            if frame.is_some() || shadow.round() != round {
                continue;
            }
            let mut bytes = vec![0; shadow.largest_frame()];
            while let Ok(Some(length)) = shadow.poll_frame(&mut bytes) {
                if let Ok(Frame::Data(..)) = Frame::decode(&bytes[..length]) {
                    *frame = Some(bytes[..length].to_vec());
                }
            }
        }
    }

    /// Packed decisions of all agents.
    pub(super) fn decisions(&self) -> Vec<f32> {
        self.shadows.iter().flat_map(|shadow| shadow.decision()).copied().collect()
    }

    /// Packed gradients of all agents.
    pub(super) fn gradients(&self) -> Vec<f32> {
        self.shadows.iter().flat_map(|shadow| shadow.gradient()).copied().collect()
    }
}
