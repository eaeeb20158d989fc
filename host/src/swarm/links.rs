//! The links of one round, laid out for speed.

use fabswarm_shared::graph::Schedule;
use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;
use std::ops::Range;

/// Below this many agents threads cost more than they save.
const AGENTS_PER_THREAD: usize = 256;

/// Who hears whom in one round: for each block of agents the senders of each, one after the other.
#[derive(Clone, Debug)]
pub struct Links {
    blocks: Vec<Block>,
    listeners: Vec<u32>,
}

/// The rows of neighbouring agents.
#[derive(Clone, Debug)]
pub(super) struct Block {
    agents: Range<usize>,
    ends: Vec<u32>,
    /// Valid up to the last of `ends`.
    senders: Vec<u32>,
    /// How often each agent of the swarm is heard by an agent of this block.
    heard: Vec<u32>,
}

impl Links {
    /// Room for the links of `agents` agents, in one block a thread.
    #[must_use]
    pub fn new(agents: usize) -> Self {
        let count = (agents / AGENTS_PER_THREAD).clamp(1, rayon::current_num_threads());
        let start = |block: usize| agents * block / count;
        let block = |index: usize| Block {
            agents: start(index)..start(index + 1),
            ends: Vec::new(),
            senders: Vec::new(),
            heard: vec![0; agents],
        };
        Self { blocks: (0..count).map(block).collect(), listeners: vec![0; agents] }
    }

    /// Lays out the links of `round`.
    pub fn lay(&mut self, schedule: &(impl Schedule + Sync), round: u32) {
        if let [block] = self.blocks.as_mut_slice() {
            block.lay(schedule, round);
        } else {
            self.blocks.par_iter_mut().for_each(|block| block.lay(schedule, round));
        }
        self.count_listeners();
    }

    /// Counts who hears each agent, once all blocks are laid.
    pub(super) fn count_listeners(&mut self) {
        if let [block] = self.blocks.as_mut_slice() {
            std::mem::swap(&mut self.listeners, &mut block.heard);
            return;
        }
        self.listeners.fill(0);
        for block in &self.blocks {
            for (total, heard) in self.listeners.iter_mut().zip(&block.heard) {
                *total += heard;
            }
        }
    }

    /// The blocks, so that each can be worked on by its own thread.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The same for threads that lay their block of the next round, and how many hear each agent in this one.
    pub(super) fn blocks_mut(&mut self) -> (&mut [Block], &[u32]) {
        (&mut self.blocks, &self.listeners)
    }

    /// How many others hear each agent.
    #[must_use]
    pub fn listeners(&self) -> &[u32] {
        &self.listeners
    }
}

/// The work of laying out a block, as something that is compiled for the registers of this machine.
struct Lay<'a, G> {
    block: &'a mut Block,
    schedule: &'a G,
    round: u32,
}

impl<G: Schedule> NullaryFnOnce for Lay<'_, G> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.block.lay_out(self.schedule, self.round);
    }
}

impl Block {
    pub(super) fn lay(&mut self, schedule: &impl Schedule, round: u32) {
        Arch::new().dispatch(Lay { block: self, schedule, round });
    }

    #[inline(always)]
    fn lay_out(&mut self, schedule: &impl Schedule, round: u32) {
        self.ends.clear();
        self.heard.fill(0);
        let mut count = 0;
        for agent in self.agents.clone() {
            let first = count;
            schedule.heard_in_words(agent, round, |word, bits| {
                if self.senders.len() < count + 64 {
                    self.senders.resize(2 * (count + 64), 0);
                }
                unpack(64 * word as u32, bits, &mut self.senders[count..]);
                count += bits.count_ones() as usize;
            });
            for &sender in &self.senders[first..count] {
                self.heard[sender as usize] += 1;
            }
            self.ends.push(count as u32);
        }
    }

    pub(super) fn agents(&self) -> Range<usize> {
        self.agents.clone()
    }

    /// Each agent with the senders it hears.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let mut start = 0;
        self.agents.clone().zip(&self.ends).map(move |(agent, &end)| {
            let row = &self.senders[start..end as usize];
            start = end as usize;
            (agent, row)
        })
    }
}

/// Writes where bits are set, and a few words of rubbish behind: writing eight at a time costs less than a branch that nobody
/// can foresee after each.
#[inline(always)]
fn unpack(first: u32, mut bits: u64, row: &mut [u32]) {
    for eight in row.as_chunks_mut::<8>().0 {
        // A compiler that knows how many they are carries each bit field into a vector register and finds places there, at twice the cost.
        for place in &mut eight[..std::hint::black_box(8)] {
            *place = first + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
        if bits == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_shared::graph::{Graph, Topology};

    #[test]
    fn blocks_hold_the_same_links_as_the_schedule() {
        let topology = Topology::ErdosRenyi { edge_probability: 0.01 };
        let graph = Graph { topology, agents: 1000, seed: 4 };
        let mut links = Links::new(1000);
        for round in 0..3 {
            links.lay(&graph, round);
            let mut listeners = vec![0; 1000];
            for (agent, row) in links.blocks().iter().flat_map(Block::rows) {
                let mut expected = Vec::new();
                graph.heard_by(agent, round, |sender| expected.push(sender as u32));
                assert_eq!(row, expected);
                expected.iter().for_each(|&sender| listeners[sender as usize] += 1);
            }
            assert_eq!(links.listeners(), listeners);
        }
    }
}
