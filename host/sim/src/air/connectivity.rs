//! Joint connectivity of the graphs, and the audience of each agent.

use fabswarm_diagnostic::Diagnostic;
use std::ops::Range;

use fabswarm_shared::graph::{Disconnected, Schedule, Topology, check_joint_connectivity};

use super::source::GraphSource;
use super::{LinkSource, Motion, Recording};
use crate::scenario::{Scenario, TopologyKind};

impl LinkSource {
    /// Checks the windows of the run one after the other, as many as a second or so allows.
    ///
    /// # Errors
    /// The first that does not join all agents, with what brings them together.
    pub fn check_connectivity(&mut self, scenario: &Scenario) -> Result<(), Diagnostic> {
        const MOST_LINKS: f64 = 2e7;
        if self.is_always_connected() {
            return Ok(());
        }
        let rounds = u32::try_from(scenario.swarm.rounds).unwrap_or(u32::MAX);
        let (agents, window) = (self.agents() as f64, scenario.network.connectivity_window.min(rounds));
        let share = match self.graphs {
            GraphSource::Drawn(_) => scenario.network.edge_probability,
            GraphSource::Recorded(_) | GraphSource::Motion(_) => 1.0,
        };
        let links_of_a_window = agents * (1.0 + agents * share) * f64::from(window);
        let affordable = (MOST_LINKS / links_of_a_window).ceil() as u64;
        let windows = (scenario.swarm.rounds / u64::from(window)).clamp(1, affordable.max(1));
        let mut reached = vec![false; self.agents()];
        let is_joined = |source: &mut Self, index: u32, reached: &mut [bool]| {
            let rounds = index * window..(index + 1) * window;
            // Links of agents that fly take long to work out: once each is enough.
            if source.motion().is_some() {
                let union = source.record_union(rounds.clone());
                return check_joint_connectivity(&union.trace(), 0..1, reached)
                    .map_err(|found| Disconnected { rounds, ..found });
            }
            check_joint_connectivity(source, rounds, reached)
        };
        (0..windows.min(u64::from(u32::MAX / window)) as u32)
            .try_for_each(|index| is_joined(self, index, &mut reached))
            .map_err(|Disconnected { from, to, rounds }| {
                let what = format!(
                    "the network is not connected: information from agent {from} in rounds {} to {} does not reach agent {to}",
                    rounds.start,
                    rounds.end - 1
                );
                let window = rounds.end - rounds.start;
                let (remedy, key) = (remedy(scenario), scenario.network.connectivity_window);
                let wider = if window < key {
                    format!("swarm.rounds (now {window}), which is less than network.connectivity_window ({key})")
                } else {
                    format!("network.connectivity_window (now {window})")
                };
                Diagnostic::new(what, format!("{remedy}, or raise {wider}"))
            })
    }

    /// Everybody who hears anybody in some of `rounds`, as one round.
    pub(super) fn record_union(&mut self, rounds: Range<u32>) -> Recording {
        let agents = self.agents();
        let mut union = Recording::silence(agents);
        for round in rounds {
            self.look_at(round);
            for receiver in 0..agents {
                self.heard_by(receiver, round, |sender| union.add_link(receiver, sender));
            }
        }
        union
    }

    /// For each agent, who may ever hear it in a run of `rounds` rounds, ascending.
    pub fn audiences(&mut self, rounds: u32) -> Vec<Vec<usize>> {
        let agents = self.agents();
        let period = match &self.graphs {
            GraphSource::Drawn(graph) => match graph.topology {
                Topology::Complete => None,
                Topology::ErdosRenyi { edge_probability: share }
                | Topology::Paper { edge_probability: share, .. }
                    if share > 0.0 =>
                {
                    None
                }
                Topology::Paper { phase_rounds, .. } => Some(phase_rounds.saturating_mul(3)),
                Topology::ErdosRenyi { .. } | Topology::Ring | Topology::ReversedRing => Some(1),
            },
            GraphSource::Recorded(recording) => Some(recording.trace().rounds() as u32),
            GraphSource::Motion(_) => Some(rounds),
        };
        let exchanges = self.blocks.map_or(1, |blocks| blocks.every);
        let mut audiences = vec![Vec::new(); agents];
        let mut add = |receiver: usize, sender: usize| audiences[sender].push(receiver);
        match (self.motion().map(Motion::is_formation), period) {
            (_, None) => (0..agents).for_each(|receiver| {
                (0..agents).filter(|&sender| sender != receiver).for_each(|sender| add(receiver, sender));
            }),
            // Places in a formation never change, and so it is known who is too far away whatever the weather.
            (Some(true), _) => (0..agents).for_each(|receiver| {
                let in_reach = self.motion().into_iter().flat_map(|motion| motion.in_reach(receiver));
                in_reach.for_each(|sender| add(receiver, sender));
            }),
            (Some(false), Some(period)) => {
                let union = self.record_union(0..period);
                (0..agents)
                    .for_each(|receiver| union.trace().heard_by(receiver, 0, |sender| add(receiver, sender)));
            }
            (None, Some(period)) => {
                for receiver in 0..agents {
                    (0..period.saturating_mul(exchanges))
                        .for_each(|round| self.heard_by(receiver, round, |sender| add(receiver, sender)));
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
        _ if scenario.network.blocks > 1 && scenario.network.exchange_every > 1 => {
            format!("lower network.exchange_every (now {})", scenario.network.exchange_every)
        }
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

    #[test]
    fn links_between_blocks_that_are_never_up_have_no_audience() {
        let crossing = |change: fn(&mut Scenario)| {
            let mut scenario = Scenario::default();
            (scenario.swarm.agents, scenario.swarm.rounds) = (4, 90);
            (scenario.network.blocks, scenario.network.exchange_every) = (2, 3);
            scenario.network.edge_probability = 0.0;
            change(&mut scenario);
            let mut source = LinkSource::new(&scenario).unwrap();
            (source.audiences(90), source.check_connectivity(&scenario).map_err(|error| error.to_string()))
        };
        // Phases of one round and an exchange in every third: blocks only meet while the ring is reversed.
        let (audiences, is_connected) = crossing(|scenario| scenario.network.phase_rounds = 1);
        assert_eq!(audiences, [vec![1, 3], vec![0], vec![1, 3], vec![2]]);
        assert!(is_connected.is_ok());
        let (audiences, _) = crossing(|scenario| scenario.network.topology = TopologyKind::Ring);
        assert_eq!(audiences, [[1], [2], [3], [0]]);
        let (_, torn) = crossing(|scenario| scenario.network.exchange_every = 100);
        assert!(torn.unwrap_err().contains("lower network.exchange_every (now 100)"));
    }
}
