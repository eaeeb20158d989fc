//! The links of one round, laid out for speed.

use crate::cores;
use fabswarm_shared::graph::Schedule;
use pulp::{Arch, NullaryFnOnce};
use std::ops::Range;

/// Below this many agents threads cost more than they save.
const AGENTS_PER_THREAD: usize = 256;

/// Agents whose links are drawn side by side: those of a vector register.
const LANES: usize = 16;

/// The links of one round, in blocks of neighbouring agents.
#[derive(Clone, Debug)]
pub(crate) struct LinkTable {
    /// The blocks, so that each can be worked on by its own thread.
    pub(super) blocks: Vec<LinkBlock>,
    /// Agents of every block but the last, which may have fewer.
    pub(super) block_agents: usize,
    pub(super) agents: usize,
    /// One entry more than agents: an unused lane names the one after the last.
    pub(super) listeners: Vec<u32>,
}

/// The links to neighbouring agents.
#[derive(Clone, Debug)]
pub(super) struct LinkBlock {
    agents: Range<usize>,
    /// For each [`LANES`] agents: their first senders, then their second ones, and so on.
    senders: Vec<Lanes>,
    /// Where the senders of each [`LANES`] agents start.
    starts: Vec<usize>,
    /// How many each agent hears.
    degrees: Vec<Lanes>,
    /// How often each agent of the swarm is heard by an agent of this block; laid out as the listeners.
    heard: Vec<u32>,
}

/// One number per agent, in one vector register and cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Lanes([u32; LANES]);

impl LinkTable {
    /// Room for the links of `agents` agents, in one block a thread.
    pub(super) fn new(agents: usize) -> Self {
        let count = (agents / AGENTS_PER_THREAD).clamp(1, cores::count());
        let block_agents = agents.div_ceil(count).next_multiple_of(LANES);
        let block = |start: usize| LinkBlock {
            agents: start..agents.min(start + block_agents),
            senders: Vec::new(),
            starts: Vec::new(),
            degrees: Vec::new(),
            heard: vec![0; agents + 1],
        };
        let blocks = (0..agents).step_by(block_agents).map(block).collect();
        Self { blocks, block_agents, agents, listeners: vec![0; agents + 1] }
    }

    /// Lays out the links of `round`.
    pub(super) fn lay(&mut self, schedule: &(impl Schedule + Sync), round: u32) {
        let () = cores::map(self.blocks.iter_mut(), |block| block.lay(schedule, round));
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

    /// How many others hear each agent.
    pub(super) fn listeners(&self) -> &[u32] {
        &self.listeners[..self.agents]
    }

    /// The senders that each agent hears; nobody before the links are laid.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, impl ExactSizeIterator<Item = usize> + Clone)> {
        self.blocks.iter().flat_map(LinkBlock::rows)
    }
}

/// The work of laying out a block, compiled for the vector registers of this machine.
struct LayoutKernel<'a, G> {
    block: &'a mut LinkBlock,
    schedule: &'a G,
    round: u32,
}

impl<G: Schedule> NullaryFnOnce for LayoutKernel<'_, G> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.block.lay_out(self.schedule, self.round);
    }
}

impl LinkBlock {
    pub(super) fn lay(&mut self, schedule: &impl Schedule, round: u32) {
        Arch::new().dispatch(LayoutKernel { block: self, schedule, round });
    }

    #[inline(always)]
    fn lay_out(&mut self, schedule: &impl Schedule, round: u32) {
        let nobody = schedule.agents() as u32;
        self.senders.clear();
        self.starts.clear();
        self.degrees.clear();
        for first in self.agents.clone().step_by(LANES) {
            let start = self.senders.len();
            schedule.heard_side_by_side(first, round, |number, senders| {
                if self.senders.len() == start + number {
                    self.senders.push(Lanes(senders));
                } else {
                    let Lanes(known) = &mut self.senders[start + number];
                    known.iter_mut().zip(senders).for_each(|(known, sender)| *known = sender.min(*known));
                }
            });
            let mut degrees = [0; LANES];
            for Lanes(senders) in &self.senders[start..] {
                for (degree, &sender) in degrees.iter_mut().zip(senders) {
                    *degree += u32::from(sender < nobody);
                }
            }
            self.degrees.push(Lanes(degrees));
            self.starts.push(start);
        }
        self.heard.fill(0);
        for Lanes(senders) in &self.senders {
            senders.iter().for_each(|&sender| self.heard[sender as usize] += 1);
        }
    }

    pub(super) fn agents(&self) -> Range<usize> {
        self.agents.clone()
    }

    /// Each agent with the senders it hears; none before the block is laid.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, impl ExactSizeIterator<Item = usize> + Clone)> {
        let laid = LANES * self.degrees.len();
        self.agents.clone().enumerate().take(laid).map(|(at, agent)| {
            let (group, lane) = (at / LANES, at % LANES);
            let degree = self.degrees[group].0[lane] as usize;
            let senders = &self.senders[self.starts[group]..][..degree];
            (agent, senders.iter().map(move |Lanes(senders)| senders[lane] as usize))
        })
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
        let mut links = LinkTable::new(1000);
        assert_eq!(links.rows().count(), 0, "nothing is laid yet");
        for round in 0..3 {
            links.lay(&graph, round);
            let mut listeners = vec![0; 1000];
            for (agent, row) in links.rows() {
                let mut expected = Vec::new();
                graph.heard_by(agent, round, |sender| expected.push(sender));
                assert_eq!(row.collect::<Vec<_>>(), expected);
                expected.iter().for_each(|&sender| listeners[sender] += 1);
            }
            assert_eq!(links.listeners(), listeners);
        }
    }
}
