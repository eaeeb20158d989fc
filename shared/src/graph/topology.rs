//! Graphs that are drawn from a seed.

use super::{Schedule, random};
use serde::{Deserialize, Serialize};

/// A family of directed graphs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Topology {
    /// Agent i hears agent i − 1.
    Ring,
    /// Agent i hears agent i + 1.
    ReversedRing,
    /// Everybody hears everybody.
    Complete,
    /// Every directed edge exists with this probability, drawn anew each round. Nothing makes it connected.
    ErdosRenyi {
        /// ν.
        edge_probability: f64,
    },
    /// The paper's: `phase_rounds` rounds of Erdős–Rényi graphs augmented by a directed cycle, then as many
    /// of a directed ring, then of the reversed ring.
    Paper {
        /// ν.
        edge_probability: f64,
        /// A third of the period.
        phase_rounds: u32,
    },
}

impl Topology {
    /// Whether every single round is strongly connected by construction.
    pub const fn is_always_connected(&self) -> bool {
        !matches!(self, Self::ErdosRenyi { .. })
    }

    /// The kind of graph of a round, and whether everybody hears the agent before in any case.
    #[cfg_attr(not(microcontroller), inline(always))]
    const fn in_round(self, round: u32) -> (Self, bool) {
        match self {
            Self::Paper { edge_probability, phase_rounds } => {
                let phase_rounds = if phase_rounds == 0 { 1 } else { phase_rounds };
                match (round / phase_rounds) % 3 {
                    0 => (Self::ErdosRenyi { edge_probability }, true),
                    1 => (Self::Ring, false),
                    _ => (Self::ReversedRing, false),
                }
            }
            same => (same, false),
        }
    }
}

/// A topology over a number of agents, drawn from a seed.
///
/// ```
/// use fabswarm_shared::graph::{Graph, Schedule, Topology};
///
/// let graph = Graph { topology: Topology::Ring, agents: 4, seed: 0 };
/// graph.heard_by(0, 17, |sender| assert_eq!(sender, 3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// The family.
    pub topology: Topology,
    /// How many agents there are.
    pub agents: usize,
    /// The seed of random edges.
    pub seed: u64,
}

impl Schedule for Graph {
    fn agents(&self) -> usize {
        self.agents
    }

    #[cfg_attr(not(microcontroller), inline(always))]
    fn heard_by(&self, agent: usize, round: u32, mut visit: impl FnMut(usize)) {
        self.heard_side_by_side(agent, round, |_, [sender]| {
            if (sender as usize) < self.agents {
                visit(sender as usize);
            }
        });
    }

    #[cfg_attr(not(microcontroller), inline(always))]
    fn heard_side_by_side<const LANES: usize>(
        &self,
        first: usize,
        round: u32,
        mut visit: impl FnMut(usize, [u32; LANES]),
    ) {
        if self.agents < 2 {
            return;
        }
        let (topology, joins_ring) = self.topology.in_round(round);
        let (count, sender): (_, fn(&Self, usize, usize) -> usize) = match topology {
            Topology::Ring => (1, |graph, agent, _| agent.checked_sub(1).unwrap_or(graph.agents - 1)),
            Topology::ReversedRing => {
                (1, |graph, agent, _| if agent + 1 == graph.agents { 0 } else { agent + 1 })
            }
            Topology::Complete => (self.agents - 1, |_, agent, number| number + usize::from(number >= agent)),
            Topology::ErdosRenyi { edge_probability } | Topology::Paper { edge_probability, .. } => {
                return random::senders(self, first, round, edge_probability, joins_ring, visit);
            }
        };
        for number in 0..count {
            let mut senders = [self.agents as u32; LANES];
            for (to, agent) in senders.iter_mut().zip(first..self.agents) {
                *to = sender(self, agent, number) as u32;
            }
            visit(number, senders);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn row(graph: &Graph, agent: usize, round: u32) -> Vec<usize> {
        let mut senders = Vec::new();
        graph.heard_by(agent, round, |sender| senders.push(sender));
        senders
    }

    fn topology(kind: u32, edge_probability: f64) -> Topology {
        match kind {
            0 => Topology::Ring,
            1 => Topology::ReversedRing,
            2 => Topology::Complete,
            3 => Topology::ErdosRenyi { edge_probability },
            _ => Topology::Paper { edge_probability, phase_rounds: 10 },
        }
    }

    #[test]
    fn rings_turn_both_ways() {
        let ring = Graph { topology: Topology::Ring, agents: 3, seed: 0 };
        assert_eq!([row(&ring, 0, 5), row(&ring, 1, 5), row(&ring, 2, 5)], [[2], [0], [1]]);
        let reversed = Graph { topology: Topology::ReversedRing, ..ring };
        assert_eq!([row(&reversed, 0, 5), row(&reversed, 1, 5), row(&reversed, 2, 5)], [[1], [2], [0]]);
    }

    #[test]
    fn the_paper_schedule_has_period_thirty() {
        let paper = Topology::Paper { edge_probability: 0.5, phase_rounds: 10 };
        let graph = Graph { topology: paper, agents: 10, seed: 1 };
        assert!(row(&graph, 4, 0).contains(&3));
        assert_eq!(row(&graph, 4, 10), [3]);
        assert_eq!(row(&graph, 4, 29), [5]);
        assert_ne!(row(&graph, 4, 30), row(&graph, 4, 0));
    }

    proptest! {
        #[test]
        fn rows_ascend_without_the_agent_and_lanes_hold_them(
            agents in 0usize..40, seed: u64, round: u32, probability in 0.0..=1.0f64, kind in 0u32..5,
        ) {
            let graph = Graph { topology: topology(kind, probability), agents, seed };
            for first in (0..agents).step_by(16) {
                let mut rows = [const { Vec::new() }; 16];
                graph.heard_side_by_side::<16>(first, round, |number, senders| {
                    for (row, sender) in rows.iter_mut().zip(senders).filter(|(_, sender)| *sender < agents as u32) {
                        assert_eq!(row.len(), number);
                        row.push(sender as usize);
                    }
                });
                for (lane, row_of_lane) in rows.iter().enumerate() {
                    let alone = if first + lane < agents { row(&graph, first + lane, round) } else { Vec::new() };
                    prop_assert_eq!(row_of_lane, &alone);
                    prop_assert!(alone.is_sorted_by(|one, next| one < next));
                    prop_assert!(alone.iter().all(|&sender| sender < agents && sender != first + lane));
                }
            }
        }
    }
}
