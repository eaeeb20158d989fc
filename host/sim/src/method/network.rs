//! The network of a method: links round by round, and what has been sent over them.

use std::fmt::Debug;
use std::rc::Rc;

use super::links::LinkWeights;

/// The source of the links of each round.
pub trait LinkSequence: Debug {
    /// The links of `round`. Rounds come in ascending order, each once.
    fn links(&mut self, round: u32) -> Rc<LinkWeights>;
}

/// Links over the rounds, and a count of the floats that were sent over them.
#[derive(Debug)]
pub struct Network {
    sequence: Box<dyn LinkSequence>,
    agents: usize,
    round: u32,
    floats: u64,
}

impl Network {
    /// A network of `agents` agents before its first round.
    pub fn new(agents: usize, sequence: impl LinkSequence + 'static) -> Self {
        Self { sequence: Box::new(sequence), agents, round: 0, floats: 0 }
    }

    /// The links of the next round.
    pub fn next_round(&mut self) -> Rc<LinkWeights> {
        let round = self.round;
        self.round += 1;
        self.sequence.links(round)
    }

    /// Counts `words` floats on each link of a round.
    pub fn count(&mut self, links: &LinkWeights, words: usize) {
        self.floats += (links.count() * words) as u64;
    }

    /// Number of agents.
    pub const fn agents(&self) -> usize {
        self.agents
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
