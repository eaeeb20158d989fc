//! Blocks of neighbouring agents that hear each other only now and then, as hosts do that exchange every K-th round.

use crate::scenario::NetworkSection;

/// Agents in blocks, and the rounds in which links from one block to another are up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockSchedule {
    agents: usize,
    blocks: usize,
    /// Links between blocks are up in every round with a multiple of this number, counted from 1.
    pub(super) every: u32,
}

impl BlockSchedule {
    /// The blocks that `network` asks for; nothing where links between them are always up.
    pub(super) fn new(network: &NetworkSection, agents: usize) -> Option<Self> {
        let (blocks, every) = (network.blocks, network.exchange_every);
        (blocks > 1 && every > 1).then_some(BlockSchedule { agents, blocks, every })
    }

    /// The block of `agent`: all have the same number of agents, or the first ones have one more.
    const fn block_of(self, agent: usize) -> usize {
        let (size, larger) = (self.agents / self.blocks, self.agents % self.blocks);
        let in_larger = larger * (size + 1);
        if agent < in_larger { agent / (size + 1) } else { larger + (agent - in_larger) / size }
    }

    /// Whether all links are up in a round, the first of which is 0.
    pub(super) const fn is_exchange(self, round: u32) -> bool {
        (round % self.every) + 1 == self.every
    }

    /// Whether what `sender` sends in `round` may reach `receiver`.
    pub(super) const fn joins(self, sender: usize, receiver: usize, round: u32) -> bool {
        self.is_exchange(round) || self.block_of(sender) == self.block_of(receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_equal_as_can_be_and_meet_in_every_kth_round() {
        let of = |agents, blocks| BlockSchedule { agents, blocks, every: 3 };
        let blocks = |schedule: BlockSchedule| {
            (0..schedule.agents).map(|agent| schedule.block_of(agent)).collect::<Vec<_>>()
        };
        assert_eq!(blocks(of(10, 3)), [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]);
        assert_eq!(blocks(of(4, 4)), [0, 1, 2, 3]);
        assert_eq!(blocks(of(4, 2)), [0, 0, 1, 1]);
        let meets: Vec<bool> = (0..7).map(|round| of(4, 2).joins(0, 3, round)).collect();
        assert_eq!(meets, [false, false, true, false, false, true, false]);
        assert!((0..7).all(|round| of(4, 2).joins(0, 1, round)));
    }
}
