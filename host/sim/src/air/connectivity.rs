//! Joint connectivity of the graphs, and the audience of each agent.

use fabswarm_shared::graph::{self, Disconnected, Schedule, check_joint_connectivity};

use super::{Error, LinkSource};
use crate::scenario::{Scenario, TopologyKind};

impl LinkSource {
    /// Checks the windows of the run one after the other, as many as a second or so allows.
    ///
    /// # Errors
    /// The first that does not join all agents, with what brings them together.
    pub fn check_connectivity(&mut self, scenario: &Scenario) -> Result<(), Error> {
        const MOST_LINKS: f64 = 2e7;
        if self.is_always_connected() {
            return Ok(());
        }
        let rounds = u32::try_from(scenario.swarm.rounds).unwrap_or(u32::MAX);
        let (agents, window) = (self.agents() as f64, scenario.network.connectivity_window.min(rounds));
        let share = match self {
            Self::Drawn(_) => scenario.network.edge_probability,
            Self::Recorded(_) | Self::Motion(_) => 1.0,
        };
        let links_of_a_window = agents * (1.0 + agents * share) * f64::from(window);
        let affordable = (MOST_LINKS / links_of_a_window).ceil() as u64;
        let windows = (scenario.swarm.rounds / u64::from(window)).clamp(1, affordable.max(1));
        let mut reached = vec![false; self.agents()];
        let is_joined = |source: &mut Self, index: u32, reached: &mut [bool]| {
            let rounds = index * window..(index + 1) * window;
            match source {
                // Links of agents that fly take long to work out: once each is enough.
                Self::Motion(motion) => {
                    let union = motion.record_union(rounds.clone());
                    check_joint_connectivity(&union.trace(), 0..1, reached)
                        .map_err(|found| Disconnected { rounds, ..found })
                }
                Self::Drawn(_) | Self::Recorded(_) => check_joint_connectivity(source, rounds, reached),
            }
        };
        (0..windows.min(u64::from(u32::MAX / window)) as u32)
            .try_for_each(|index| is_joined(self, index, &mut reached))
            .map_err(|found| Error::Disconnected { found, remedy: remedy(scenario) })
    }

    /// For each agent, who may ever hear it in a run of `rounds` rounds, ascending.
    #[must_use]
    pub fn audiences(&mut self, rounds: u32) -> Vec<Vec<usize>> {
        let agents = self.agents();
        let is_random = |probability: f64| probability > 0.0;
        let period = match self {
            Self::Drawn(graph) => match graph.topology {
                graph::Topology::Complete => None,
                graph::Topology::ErdosRenyi { edge_probability } => {
                    (!is_random(edge_probability)).then_some(1)
                }
                graph::Topology::Paper { edge_probability, phase_rounds } => {
                    (!is_random(edge_probability)).then_some(phase_rounds.saturating_mul(3))
                }
                graph::Topology::Ring | graph::Topology::ReversedRing => Some(1),
            },
            Self::Recorded(recording) => Some(recording.trace().rounds() as u32),
            Self::Motion(_) => Some(rounds),
        };
        let mut audiences = vec![Vec::new(); agents];
        let mut add = |receiver: usize, sender: usize| audiences[sender].push(receiver);
        match (self, period) {
            (_, None) => (0..agents).for_each(|receiver| {
                (0..agents).filter(|&sender| sender != receiver).for_each(|sender| add(receiver, sender));
            }),
            // Places in a formation never change, and so it is known who is too far away whatever the weather.
            (Self::Motion(motion), _) if motion.is_formation() => {
                (0..agents)
                    .for_each(|receiver| motion.in_reach(receiver).for_each(|sender| add(receiver, sender)));
            }
            (Self::Motion(motion), Some(period)) => {
                let union = motion.record_union(0..period);
                (0..agents)
                    .for_each(|receiver| union.trace().heard_by(receiver, 0, |sender| add(receiver, sender)));
            }
            (source, Some(period)) => {
                for receiver in 0..agents {
                    (0..period)
                        .for_each(|round| source.heard_by(receiver, round, |sender| add(receiver, sender)));
                }
            }
        }
        // Receivers came in ascending order, each as often as it hears.
        audiences.iter_mut().for_each(Vec::dedup);
        audiences
    }
}

fn remedy(scenario: &Scenario) -> String {
    match scenario.network.topology {
        TopologyKind::Motion => format!(
            "lower motion.area_m (now {}), or raise motion.power_dbm (now {})",
            scenario.motion.area_m, scenario.motion.power_dbm
        ),
        TopologyKind::Recorded => "name other graphs in network.graphs".to_owned(),
        _ => format!("raise network.edge_probability (now {})", scenario.network.edge_probability),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::FlightPattern;

    fn audiences(change: impl FnOnce(&mut Scenario)) -> Vec<Vec<usize>> {
        let mut scenario = Scenario::default();
        scenario.swarm.agents = 4;
        change(&mut scenario);
        LinkSource::new(&scenario).unwrap().audiences(200)
    }

    #[test]
    fn an_audience_is_everybody_who_may_ever_hear_an_agent() {
        let everybody_else = vec![vec![1, 2, 3], vec![0, 2, 3], vec![0, 1, 3], vec![0, 1, 2]];
        assert_eq!(audiences(|_| {}), everybody_else);
        assert_eq!(audiences(|scenario| scenario.network.topology = TopologyKind::Complete), everybody_else);
        assert_eq!(audiences(|scenario| scenario.network.topology = TopologyKind::Motion), everybody_else);
        let far_apart = audiences(|scenario| {
            scenario.network.topology = TopologyKind::Motion;
            scenario.motion.pattern = FlightPattern::Formation;
            (scenario.motion.spacing_m, scenario.motion.area_m) = (300.0, 3000.0);
            (scenario.motion.shadowing_db, scenario.motion.power_spread_db) = (2.0, 0.0);
        });
        assert_eq!(far_apart, [[1, 2], [0, 3], [0, 3], [1, 2]]);
        let ring = audiences(|scenario| scenario.network.topology = TopologyKind::Ring);
        assert_eq!(ring, [[1], [2], [3], [0]]);
        let both_ways = audiences(|scenario| scenario.network.edge_probability = 0.0);
        assert_eq!(both_ways, [[1, 3], [0, 2], [1, 3], [0, 2]]);
    }
}
