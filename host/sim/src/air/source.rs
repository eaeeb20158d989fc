//! Where the graph comes from.

use fabswarm_shared::graph::{self, Graph, Schedule};

use super::{Error, Motion, Recording};
use crate::scenario::{Scenario, TopologyKind};

/// Who hears whom, round by round, as a scenario describes it.
#[derive(Clone, Debug)]
pub enum LinkSource {
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
    /// When the recorded graphs cannot be used, or a formation does not fit its area.
    pub fn new(scenario: &Scenario) -> Result<Self, Error> {
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
                    return Err(Error::TooFewGraphs { path: (&network.graphs).into(), recorded, rounds });
                }
                return Ok(Self::Recorded(recording));
            }
            TopologyKind::Motion => return Ok(Self::Motion(Box::new(Motion::new(scenario)?))),
        };
        Ok(Self::Drawn(Graph { topology, agents: scenario.swarm.agents, seed: scenario.network_seed() }))
    }

    /// Whether every single round is strongly connected by construction.
    #[must_use]
    pub fn is_always_connected(&self) -> bool {
        matches!(self, Self::Drawn(graph) if graph.topology.is_always_connected())
    }

    /// Works out once what all links of `round` need.
    pub(super) fn look_at(&mut self, round: u32) {
        if let Self::Motion(motion) = self {
            motion.look_at(round);
        }
    }

    /// Calls `visit` for each link to `receiver` in `round`, ascending by sender, with whether the radio receives what is
    /// sent over it.
    #[inline]
    pub(super) fn each_link(&self, receiver: usize, round: u32, mut visit: impl FnMut(usize, bool)) {
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
        match self {
            Self::Drawn(graph) => graph.agents,
            Self::Recorded(recording) => recording.trace().agents(),
            Self::Motion(motion) => motion.agents(),
        }
    }

    #[inline(always)]
    fn heard_by(&self, agent: usize, round: u32, visit: impl FnMut(usize)) {
        match self {
            Self::Drawn(graph) => graph.heard_by(agent, round, visit),
            Self::Recorded(recording) => recording.trace().heard_by(agent, round, visit),
            Self::Motion(motion) => motion.heard_by(agent, round, visit),
        }
    }

    #[inline(always)]
    fn heard_side_by_side<const LANES: usize>(
        &self,
        first: usize,
        round: u32,
        visit: impl FnMut(usize, [u32; LANES]),
    ) {
        match self {
            Self::Drawn(graph) => graph.heard_side_by_side(first, round, visit),
            Self::Recorded(recording) => recording.trace().heard_side_by_side(first, round, visit),
            Self::Motion(motion) => motion.heard_side_by_side(first, round, visit),
        }
    }
}
