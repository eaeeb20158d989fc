//! The vectors that agents receive in a round, and their senders.

use crate::device::Block;
use crate::mixing::MixingMatrix;

/// The links of one round.
#[derive(Clone, Debug, PartialEq)]
pub enum Exchange {
    /// By weights.
    Weights(WeightExchange),
    /// By broadcast ledger.
    Ledger(LedgerExchange),
}

/// A round of pull and push weights, or of push-sum weights.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightExchange {
    /// The weights by which receivers average decisions: rows sum to one.
    pub pull: MixingMatrix,
    /// The weights by which senders divide their trackers: columns sum to one.
    pub push: MixingMatrix,
    /// With push-sum weights, what each agent's step is multiplied by.
    pub factors: Option<Vec<f64>>,
}

/// A round of a broadcast ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerExchange {
    /// The round, from 1 on.
    pub round: u32,
    /// `[agents, agents]`: 1 plus the age in rounds of what receiver i gets from sender j, or 0 where it gets nothing new.
    pub ages: Vec<u32>,
    /// For each agent 0 while it is down, else 1.
    pub awake: Vec<u32>,
    /// Agents that restart in this round, without their memory.
    pub forgetting: Vec<usize>,
}

impl Exchange {
    /// Uniform weights, where agent i hears the agents of `heard[i]`.
    pub fn uniform(heard: &[Vec<usize>]) -> Self {
        let (pull, push) = MixingMatrix::uniform(heard);
        Exchange::Weights(WeightExchange { pull, push, factors: None })
    }

    /// Whether `agent` is neither down nor frozen.
    pub(crate) fn is_awake(&self, agent: usize) -> bool {
        match self {
            Exchange::Weights(_) => true,
            Exchange::Ledger(heard) => heard.is_awake(agent),
        }
    }

    /// Agents that restart in this round, without their memory.
    pub(crate) fn forgetting(&self) -> &[usize] {
        match self {
            Exchange::Weights(_) => &[],
            Exchange::Ledger(heard) => &heard.forgetting,
        }
    }
}

impl LedgerExchange {
    pub(crate) fn is_awake(&self, agent: usize) -> bool {
        self.awake[agent] == 1
    }

    /// Receivers in `to` and senders in `from` of what arrives, with its age in rounds.
    pub(super) fn links(
        &self,
        from: Block,
        to: Block,
    ) -> impl Iterator<Item = (usize, usize, usize)> + Clone {
        to.range().flat_map(move |receiver| {
            let row = &self.ages[receiver * self.awake.len()..];
            let heard = from.range().filter(|&sender| row[sender] > 0);
            heard.map(move |sender| (receiver, sender, row[sender] as usize - 1))
        })
    }
}
