//! Graphs that are drawn from a seed.

use super::Schedule;
use crate::rng::{Purpose, Stream};
use serde::{Deserialize, Serialize};

/// From this edge probability on a coin is thrown for every edge, 64 at a time. Below it the gaps between edges are drawn,
/// each with a logarithm: then the cost follows the number of edges, and swarms of 100,000 with a few links each stay cheap.
const DENSE: f64 = 1.0 / 64.0;

/// Words of coins that are thrown together where a row has as many. A microcontroller gains nothing by it.
const WORDS_AT_ONCE: usize = if cfg!(target_os = "none") { 1 } else { 8 };

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
    #[must_use]
    pub const fn is_always_connected(&self) -> bool {
        !matches!(self, Self::ErdosRenyi { .. })
    }
}

/// A topology over a number of agents, drawn from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// The family.
    pub topology: Topology,
    /// How many agents there are.
    pub agents: usize,
    /// What random edges are drawn from.
    pub seed: u64,
}

impl Graph {
    fn before(&self, agent: usize) -> usize {
        agent.checked_sub(1).unwrap_or(self.agents.saturating_sub(1))
    }

    fn after(&self, agent: usize) -> usize {
        if agent + 1 == self.agents { 0 } else { agent + 1 }
    }

    /// The agents that there are, of the 64 of one word.
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn existing(&self, word: usize) -> u64 {
        u64::MAX >> 64usize.saturating_sub(self.agents - 64 * word)
    }

    /// A word of senders without `agent` and those who do not exist, and with `always`.
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn valid(&self, word: usize, senders: u64, agent: usize, always: Option<usize>) -> u64 {
        let bit = |sender: usize| if sender / 64 == word { 1 << (sender % 64) } else { 0 };
        (senders & self.existing(word) | always.map_or(0, bit)) & !bit(agent)
    }

    /// Random senders, and `always` among them where one is given.
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn random(
        &self,
        agent: usize,
        round: u32,
        probability: f64,
        always: Option<usize>,
        mut visit: impl FnMut(usize, u64),
    ) {
        let mut stream = Stream::new(self.seed, agent as u32, round, Purpose::Edges);
        if probability >= DENSE {
            let words = self.agents.div_ceil(64);
            let mut word = 0;
            while word < words {
                if WORDS_AT_ONCE > 1 && words - word >= WORDS_AT_ONCE {
                    for coins in stream.coins::<WORDS_AT_ONCE>(probability, word, u64::MAX) {
                        visit(word, self.valid(word, coins, agent, always));
                        word += 1;
                    }
                } else {
                    let [coins] = stream.coins::<1>(probability, word, self.existing(word));
                    visit(word, self.valid(word, coins, agent, always));
                    word += 1;
                }
            }
            return;
        }
        let mut visit = |sender: usize| visit(sender / 64, 1 << (sender % 64));
        let ln_failure = libm::log(1.0 - probability);
        let mut due = always;
        let mut sender = 0usize;
        loop {
            let gap = if probability > 0.0 { stream.failures_before_success(ln_failure) } else { u32::MAX };
            sender = sender.saturating_add(gap as usize);
            if let Some(always) = due
                && always <= sender
            {
                due = None;
                if always != agent {
                    visit(always);
                }
            }
            if sender >= self.agents {
                return;
            }
            if sender != agent && Some(sender) != always {
                visit(sender);
            }
            sender += 1;
        }
    }
}

impl Schedule for Graph {
    fn agents(&self) -> usize {
        self.agents
    }

    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn heard_in_words(&self, agent: usize, round: u32, mut visit: impl FnMut(usize, u64)) {
        if self.agents < 2 {
            return;
        }
        let mut one = |sender: usize| visit(sender / 64, 1 << (sender % 64));
        match self.topology {
            Topology::Ring => one(self.before(agent)),
            Topology::ReversedRing => one(self.after(agent)),
            Topology::Complete => {
                (0..self.agents.div_ceil(64))
                    .for_each(|word| visit(word, self.valid(word, u64::MAX, agent, None)));
            }
            Topology::ErdosRenyi { edge_probability } => {
                self.random(agent, round, edge_probability, None, visit)
            }
            Topology::Paper { edge_probability, phase_rounds } => match (round / phase_rounds.max(1)) % 3 {
                0 => self.random(agent, round, edge_probability, Some(self.before(agent)), visit),
                1 => one(self.before(agent)),
                _ => one(self.after(agent)),
            },
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

    #[test]
    fn edges_are_as_frequent_as_asked() {
        for probability in [0.0, 0.05, 0.3, 0.9, 1.0] {
            let topology = Topology::ErdosRenyi { edge_probability: probability };
            let graph = Graph { topology, agents: 50, seed: 3 };
            let edges: usize = (0..20)
                .flat_map(|round| (0..50).map(move |i| (i, round)))
                .map(|(agent, round)| row(&graph, agent, round).len())
                .sum();
            let expected = probability * 20.0 * 50.0 * 49.0;
            assert!((edges as f64 - expected).abs() <= 4.0 * (expected * (1.0 - probability)).sqrt());
        }
    }

    proptest! {
        #[test]
        fn rows_ascend_and_leave_the_agent_out(
            agents in 0usize..40, seed: u64, round: u32, probability in 0.0..=1.0f64, kind in 0..5,
        ) {
            let topology = match kind {
                0 => Topology::Ring,
                1 => Topology::ReversedRing,
                2 => Topology::Complete,
                3 => Topology::ErdosRenyi { edge_probability: probability },
                _ => Topology::Paper { edge_probability: probability, phase_rounds: 10 },
            };
            let graph = Graph { topology, agents, seed };
            for agent in 0..agents {
                let senders = row(&graph, agent, round);
                prop_assert!(senders.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert!(senders.iter().all(|&sender| sender < agents && sender != agent));
            }
        }
    }
}
