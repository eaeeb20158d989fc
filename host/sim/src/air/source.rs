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

    /// Calls `visit` for each link to `receiver` in `round`, ascending by sender, with whether the radio receives what is
    /// sent over it.
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
            GraphSource::Motion(motion) => motion.agents(),
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
        mut visit: impl FnMut(usize, [u32; LANES]),
    ) {
        let nobody = self.agents() as u32;
        let visit = |number: usize, mut senders: [u32; LANES]| {
            if let Some(blocks) = self.blocks {
                for (sender, receiver) in senders.iter_mut().zip(first..) {
                    if *sender < nobody && !blocks.joins(*sender as usize, receiver, round) {
                        *sender = nobody;
                    }
                }
            }
            visit(number, senders);
        };
        match &self.graphs {
            GraphSource::Drawn(graph) => graph.heard_side_by_side(first, round, visit),
            GraphSource::Recorded(recording) => recording.trace().heard_side_by_side(first, round, visit),
            GraphSource::Motion(motion) => motion.heard_side_by_side(first, round, visit),
        }
    }
}
