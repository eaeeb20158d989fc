//! The links of one round as two sparse matrices: A, by which agents pull, and B, by which they push.

use fabswarm_shared::graph::{Schedule, Weights};

/// The links of one round, with the weights of A and B; rows are receivers.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkWeights {
    /// Start of each receiver's senders, and the end of the last ones.
    starts: Vec<usize>,
    senders: Vec<usize>,
    /// a_ij and b_ij of each sender.
    weights: Vec<[f64; 2]>,
    /// a_ii and b_ii.
    own: Vec<[f64; 2]>,
}

/// One of the two matrices of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// A, row-stochastic.
    Pull,
    /// B, column-stochastic unless frames are lost.
    Push,
}

impl LinkWeights {
    /// No links between `agents` agents: each keeps what it has.
    pub fn none(agents: usize) -> Self {
        Self {
            starts: vec![0; agents + 1],
            senders: Vec::new(),
            weights: Vec::new(),
            own: vec![[1.0; 2]; agents],
        }
    }

    /// The links of `round` with weights by degree. `is_lost` tells of each sender and receiver whether the frame between them
    /// is lost: the sender has given its share away by then, the receiver averages what it heard.
    pub fn of_round(
        schedule: &impl Schedule,
        round: u32,
        weights: Weights,
        mut is_lost: impl FnMut(usize, usize) -> bool,
    ) -> Self {
        let agents = schedule.agents();
        let mut listeners = vec![0; agents];
        let mut heard = vec![Vec::new(); agents];
        for (receiver, heard) in heard.iter_mut().enumerate() {
            schedule.heard_by(receiver, round, |sender| {
                listeners[sender] += 1;
                if !is_lost(sender, receiver) {
                    heard.push(sender);
                }
            });
        }
        Self::of_heard(&listeners, &heard, weights)
    }

    /// Weights by degree, for the senders that each agent heard and the number of agents that should have heard each sender.
    pub fn of_heard(listeners: &[usize], heard: &[Vec<usize>], weights: Weights) -> Self {
        let mut links = Self::none(listeners.len());
        for (receiver, senders) in heard.iter().enumerate() {
            let pull: f64 = weights.pull(senders.len());
            links.senders.extend(senders);
            links
                .weights
                .extend(senders.iter().map(|&sender| [pull, weights.push::<f64>(listeners[sender]).1]));
            links.starts[receiver + 1] = links.senders.len();
            links.own[receiver] = [pull, weights.push::<f64>(listeners[receiver]).0];
        }
        links
    }

    /// A directed ring in which agent i gives weight `share(i)` to the agent before it, in A as in B.
    pub fn weighted_ring(agents: usize, share: impl Fn(usize) -> f64) -> Self {
        let before = |agent: usize| (agent + agents - 1) % agents;
        Self {
            starts: (0..=agents).collect(),
            senders: (0..agents).map(before).collect(),
            weights: (0..agents).map(|agent| [share(agent), share(before(agent))]).collect(),
            own: (0..agents).map(|agent| [1.0 - share(agent); 2]).collect(),
        }
    }

    /// These weights on the links that `present` has too. The share of a missing link is lost; its receiver uses its own value.
    pub fn where_present(&self, present: &Self) -> Self {
        let mut links = Self { own: self.own.clone(), ..Self::none(self.agents()) };
        for receiver in 0..self.agents() {
            for at in self.row(receiver) {
                let (sender, weights) = (self.senders[at], self.weights[at]);
                if present.senders[present.row(receiver)].binary_search(&sender).is_ok() {
                    links.senders.push(sender);
                    links.weights.push(weights);
                } else {
                    links.own[receiver][Matrix::Pull as usize] += weights[Matrix::Pull as usize];
                }
            }
            links.starts[receiver + 1] = links.senders.len();
        }
        links
    }

    /// Number of agents.
    pub fn agents(&self) -> usize {
        self.own.len()
    }

    /// Number of frames that arrive.
    pub fn count(&self) -> usize {
        self.senders.len()
    }

    fn row(&self, receiver: usize) -> std::ops::Range<usize> {
        self.starts[receiver]..self.starts[receiver + 1]
    }

    /// The senders that `receiver` hears.
    pub fn heard_by(&self, receiver: usize) -> impl Iterator<Item = usize> + '_ {
        self.senders[self.row(receiver)].iter().copied()
    }

    /// `M·v` for packed rows of `words` words. Words before `first` belong to their agent alone and stay as they are.
    pub fn mix(&self, matrix: Matrix, v: &[f64], words: usize, first: usize) -> Vec<f64> {
        let column = matrix as usize;
        let mut mixed = v.to_vec();
        for (receiver, mixed) in mixed.chunks_exact_mut(words).enumerate() {
            let mixed = &mut mixed[first..];
            mixed.iter_mut().for_each(|word| *word *= self.own[receiver][column]);
            for at in self.row(receiver) {
                let (weight, from) = (self.weights[at][column], self.senders[at] * words);
                for (mixed, word) in mixed.iter_mut().zip(&v[from + first..from + words]) {
                    *mixed += weight * word;
                }
            }
        }
        mixed
    }

    /// `Mᵀ·v`, which takes derivatives back through [`LinkWeights::mix`].
    pub fn mix_back(&self, matrix: Matrix, v: &[f64], words: usize) -> Vec<f64> {
        let column = matrix as usize;
        let mut mixed = v.to_vec();
        for (agent, mixed) in mixed.chunks_exact_mut(words).enumerate() {
            mixed.iter_mut().for_each(|word| *word *= self.own[agent][column]);
        }
        for receiver in 0..self.agents() {
            for at in self.row(receiver) {
                let (weight, sender) = (self.weights[at][column], self.senders[at]);
                let to = &mut mixed[sender * words..(sender + 1) * words];
                for (to, word) in to.iter_mut().zip(&v[receiver * words..]) {
                    *to += weight * word;
                }
            }
        }
        mixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_shared::graph::{Graph, Topology};

    #[test]
    fn a_lost_frame_takes_its_share_along() {
        let complete = Graph { topology: Topology::Complete, agents: 3, seed: 0 };
        let links = LinkWeights::of_round(&complete, 0, Weights::Uniform, |sender, receiver| {
            (sender, receiver) == (0, 1)
        });
        assert_eq!(links.count(), 5);
        assert_eq!(links.mix(Matrix::Pull, &[8.0, 2.0, 4.0], 1, 0)[1], 3.0);
        let pushed = links.mix(Matrix::Push, &[3.0, 0.0, 0.0], 1, 0);
        assert_eq!(pushed, [1.0, 0.0, 1.0]);
    }

    #[test]
    fn old_weights_lose_what_new_links_do_not_carry() {
        let ring = LinkWeights::weighted_ring(3, |_| 0.5);
        let kept = ring.where_present(&ring);
        assert_eq!(kept, ring);
        let gone = ring.where_present(&LinkWeights::none(3));
        assert_eq!(gone.mix(Matrix::Pull, &[1.0, 2.0, 4.0], 1, 0), [1.0, 2.0, 4.0]);
        assert_eq!(gone.mix(Matrix::Push, &[1.0, 2.0, 4.0], 1, 0), [0.5, 1.0, 2.0]);
    }
}
