//! The network of a run: links round by round, and what has been sent over them.

use std::rc::Rc;

use fabswarm_shared::graph::Weights;
use fabswarm_sim::air::LinkSource;

use crate::links::{LinkWeights, lose_independently};

/// The source of the links of each round.
#[derive(Clone, Debug)]
pub enum LinkRule {
    /// Others in each round, weights by degree.
    Degrees(Rc<LinkSource>),
    /// Constant links and weights.
    Fixed(Rc<LinkWeights>),
    /// The weights of the first round for ever. Where `links_vanish`, frames still travel only over the links of each round.
    FirstRound {
        /// The graphs.
        graphs: Rc<LinkSource>,
        /// Whether links of later rounds are needed too.
        links_vanish: bool,
    },
}

/// LinkWeights over the rounds, and a count of the floats that were sent over them.
#[derive(Debug)]
pub struct Network {
    rule: LinkRule,
    first: Rc<LinkWeights>,
    loss: f64,
    seed: u64,
    round: u32,
    floats: u64,
}

impl Network {
    /// A network that loses each frame with probability `loss`.
    pub fn new(rule: LinkRule, loss: f64, seed: u64) -> Self {
        let first = match &rule {
            LinkRule::Fixed(links) => Rc::clone(links),
            LinkRule::Degrees(graphs) | LinkRule::FirstRound { graphs, .. } => {
                Rc::new(LinkWeights::of_round(&**graphs, 0, Weights::Uniform, |_, _| false))
            }
        };
        Self { rule, first, loss, seed, round: 0, floats: 0 }
    }

    /// The links of the next round.
    pub fn next_round(&mut self) -> Rc<LinkWeights> {
        let round = self.round;
        self.round += 1;
        let lost = lose_independently(self.seed, round, self.loss);
        match &self.rule {
            LinkRule::Degrees(graphs) => {
                Rc::new(LinkWeights::of_round(&**graphs, round, Weights::Uniform, lost))
            }
            LinkRule::Fixed(links) => Rc::clone(links),
            LinkRule::FirstRound { links_vanish: false, .. } => Rc::clone(&self.first),
            LinkRule::FirstRound { graphs, links_vanish: true } => Rc::new(
                self.first.where_present(&LinkWeights::of_round(&**graphs, round, Weights::Uniform, lost)),
            ),
        }
    }

    /// Counts `words` floats on each link of a round.
    pub fn count(&mut self, links: &LinkWeights, words: usize) {
        self.floats += (links.count() * words) as u64;
    }

    /// Number of agents.
    pub fn agents(&self) -> usize {
        self.first.agents()
    }

    /// Rounds of communication so far.
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// Floats that arrived so far, on all links together.
    pub const fn floats(&self) -> u64 {
        self.floats
    }
}
