//! Where the graph comes from.

use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::graph::{self, Graph, Schedule};

use super::blocks::BlockSchedule;
use super::{Motion, Recording};
use crate::scenario::{Scenario, TopologyKind};

/// The links of a scenario, round by round.
#[derive(Clone, Debug)]
pub struct LinkSource {
    pub(super) graphs: GraphSource,
    /// Which of these links are up, where agents are in blocks that do not always hear each other.
    pub(super) blocks: Option<BlockSchedule>,
}

/// Graphs of all rounds.
#[derive(Clone, Debug)]
pub(super) enum GraphSource {
    /// Drawn from a seed.
    Drawn(Graph),
    /// Read from a file.
    Recorded(Recording),
    /// As far as the radios of flying agents reach.
    Motion(Box<Motion>),
}

impl LinkSource {
    /// The graphs that `scenario` describes.
    ///
    /// # Errors
    /// When the recorded graphs cannot be used, a formation does not fit its area, or there are more blocks than agents.
    pub fn new(scenario: &Scenario) -> Result<Self, Diagnostic> {
        let (agents, blocks) = (scenario.swarm.agents, scenario.network.blocks);
        if blocks > agents {
            return Err(Diagnostic::new(
                format!("network.blocks = {blocks} for {agents} agents leaves blocks without an agent"),
                format!("set it to at most {agents}"),
            ));
        }
        let blocks = BlockSchedule::new(&scenario.network, agents);
        Ok(LinkSource { graphs: GraphSource::new(scenario)?, blocks })
    }

    /// Whether every single round is strongly connected by construction.
    pub(super) fn is_always_connected(&self) -> bool {
        self.blocks.is_none()
            && matches!(&self.graphs, GraphSource::Drawn(graph) if graph.topology.is_always_connected())
    }

    /// Whether how news spreads follows from the graphs alone. Flying agents are followed round by round; and what blocks that
    /// seldom hear each other owe waits in the ledger, so they need no turns.
    pub(crate) fn is_foreseen(&self) -> bool {
        self.blocks.is_none() && !matches!(self.graphs, GraphSource::Motion(_))
    }

    /// The flight of the agents, where they fly.
    pub(super) fn motion(&self) -> Option<&Motion> {
        match &self.graphs {
            GraphSource::Motion(motion) => Some(motion),
            _ => None,
        }
    }

    /// Works out once what all links of `round` need.
    pub(super) fn look_at(&mut self, round: u32) {
        if let GraphSource::Motion(motion) = &mut self.graphs {
            motion.look_at(round);
        }
    }

    /// Calls `visit` for each link to `receiver` in `round`, ascending by sender, with whether the radio receives what it carries.
    #[inline]
    pub(super) fn each_link(&self, receiver: usize, round: u32, mut visit: impl FnMut(usize, bool)) {
        let visit = |sender: usize, is_received: bool| {
            if self.blocks.is_none_or(|blocks| blocks.joins(sender, receiver, round)) {
                visit(sender, is_received);
            }
        };
        self.graphs.each_link(receiver, round, visit);
    }
}

impl GraphSource {
    fn new(scenario: &Scenario) -> Result<Self, Diagnostic> {
        let network = &scenario.network;
        let edge_probability = network.edge_probability;
        let topology = match network.topology {
            TopologyKind::Paper => {
                graph::Topology::Paper { edge_probability, phase_rounds: network.phase_rounds }
            }
            TopologyKind::Ring => graph::Topology::Ring,
            TopologyKind::ReversedRing => graph::Topology::ReversedRing,
            TopologyKind::ErdosRenyi => graph::Topology::ErdosRenyi { edge_probability },
            TopologyKind::Complete => graph::Topology::Complete,
            TopologyKind::Recorded => {
                let recording = Recording::read(&network.graphs, scenario.swarm.agents)?;
                let (recorded, rounds) = (recording.trace().rounds(), scenario.swarm.rounds);
                if !network.graphs_repeat && (recorded as u64) < rounds {
                    let path = &network.graphs;
                    return Err(Diagnostic::new(
                        format!("{path} has graphs of {recorded} rounds, and the run has {rounds}"),
                        format!("set swarm.rounds = {recorded}, or network.graphs_repeat = true"),
                    ));
                }
                return Ok(Self::Recorded(recording));
            }
            TopologyKind::Motion => return Ok(Self::Motion(Box::new(Motion::new(scenario)?))),
        };
        Ok(Self::Drawn(Graph { topology, agents: scenario.swarm.agents, seed: scenario.network_seed() }))
    }

    #[inline]
    fn each_link(&self, receiver: usize, round: u32, mut visit: impl FnMut(usize, bool)) {
        match self {
            Self::Drawn(graph) => graph.heard_by(receiver, round, |sender| visit(sender, true)),
            Self::Recorded(recording) => {
                recording.trace().heard_by(receiver, round, |sender| visit(sender, true));
            }
            Self::Motion(motion) => motion.each_link(receiver, round, visit),
        }
    }
}

impl Schedule for LinkSource {
    fn agents(&self) -> usize {
        match &self.graphs {
            GraphSource::Drawn(graph) => graph.agents,
            GraphSource::Recorded(recording) => recording.trace().agents(),
            GraphSource::Motion(motion) => motion.agents,
        }
    }

    #[inline(always)]
    fn heard_by(&self, agent: usize, round: u32, mut visit: impl FnMut(usize)) {
        self.each_link(agent, round, |sender, is_received| {
            if is_received {
                visit(sender);
            }
        });
    }

    #[inline(always)]
    fn heard_side_by_side<const LANES: usize>(
        &self,
        first: usize,
        round: u32,
        visit: impl FnMut(usize, [u32; LANES]),
    ) {
        match &self.graphs {
            GraphSource::Drawn(graph) if self.blocks.is_none() => {
                graph.heard_side_by_side(first, round, visit);
            }
            _ => OneByOne(self).heard_side_by_side(first, round, visit),
        }
    }
}

/// Links whose senders are found one by one: those that blocks leave out leave no gaps.
struct OneByOne<'a>(&'a LinkSource);

impl Schedule for OneByOne<'_> {
    fn agents(&self) -> usize {
        self.0.agents()
    }

    fn heard_by(&self, agent: usize, round: u32, visit: impl FnMut(usize)) {
        self.0.heard_by(agent, round, visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: senders of other blocks left gaps, and plain FAB took what came first for all that an agent hears.
    #[test]
    fn blocks_leave_no_gaps_between_senders_side_by_side() {
        let mut scenario = Scenario::default();
        (scenario.network.blocks, scenario.network.exchange_every) = (2, 3);
        scenario.network.topology = TopologyKind::Complete;
        let source = LinkSource::new(&scenario).unwrap();
        for round in 0..3 {
            let mut senders = vec![Vec::new(); 10];
            source.heard_side_by_side(0, round, |number, lanes: [u32; 16]| {
                for (agent, &sender) in lanes.iter().enumerate().filter(|(_, sender)| **sender < 10) {
                    assert_eq!(senders[agent].len(), number);
                    senders[agent].push(sender as usize);
                }
            });
            for (agent, senders) in senders.into_iter().enumerate() {
                let mut heard = Vec::new();
                source.heard_by(agent, round, |sender| heard.push(sender));
                assert_eq!(senders, heard, "agent {agent} in round {round}");
            }
        }
    }
}
