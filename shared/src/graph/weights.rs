//! Weights on the edges of a graph.
//!
//! A (pull) is row-stochastic and needs only who an agent hears; B (push) is column-stochastic and needs
//! how many hear it.

use crate::fab::pull_weight;
use crate::scalar::Scalar;

/// How weights follow from degrees.
///
/// ```
/// use fabswarm_shared::graph::Weights;
///
/// assert_eq!(Weights::Uniform.pull::<f64>(3), 0.25);
/// assert_eq!(Weights::Uniform.push::<f64>(1), (0.5, 0.5));
/// assert_eq!(Weights::LazyPush { self_weight: 0.5 }.push::<f64>(2), (0.5, 0.25));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Weights {
    /// `a_ij = 1/indeg(i)`, `b_ij = 1/outdeg(j)`, oneself included.
    Uniform,
    /// A as above; pushing keeps this much of the tracker and shares out the rest.
    LazyPush {
        /// κ = b_jj.
        self_weight: f64,
    },
}

impl Weights {
    /// `a_ij`, the same for every sender and oneself, of an agent that hears `senders` others.
    #[inline]
    pub fn pull<S: Scalar>(&self, senders: usize) -> S {
        pull_weight(senders)
    }

    /// `(b_jj, b_ij)` of an agent that `listeners` others hear.
    #[inline]
    pub fn push<S: Scalar>(&self, listeners: usize) -> (S, S) {
        match (*self, listeners) {
            (_, 0) => (S::ONE, S::ZERO),
            (Self::Uniform, _) => {
                let weight = S::ONE / S::from_f64((listeners + 1) as f64);
                (weight, weight)
            }
            (Self::LazyPush { self_weight }, _) => {
                (S::from_f64(self_weight), S::from_f64((1.0 - self_weight) / listeners as f64))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::graph::{Graph, Schedule, Topology};
    use proptest::prelude::*;
    use std::vec;

    proptest! {
        #[test]
        fn a_is_row_and_b_column_stochastic(
            agents in 1usize..20, seed: u64, round in 0u32..60, probability in 0.0..=1.0f64, kappa in 0.0..1.0f64,
        ) {
            let topology = Topology::Paper { edge_probability: probability, phase_rounds: 10 };
            let graph = Graph { topology, agents, seed };
            let mut listeners = vec![0; agents];
            for agent in 0..agents {
                graph.heard_by(agent, round, |sender| listeners[sender] += 1);
            }
            for weights in [Weights::Uniform, Weights::LazyPush { self_weight: kappa }] {
                let (mut a, mut b) = (vec![0.0; agents * agents], vec![0.0; agents * agents]);
                for agent in 0..agents {
                    let mut senders = 0;
                    graph.heard_by(agent, round, |_| senders += 1);
                    a[agent * agents + agent] = weights.pull(senders);
                    b[agent * agents + agent] = weights.push::<f64>(listeners[agent]).0;
                    graph.heard_by(agent, round, |sender| {
                        a[agent * agents + sender] = weights.pull(senders);
                        b[agent * agents + sender] = weights.push::<f64>(listeners[sender]).1;
                    });
                }
                prop_assert!(a.iter().chain(&b).all(|&weight| weight >= 0.0));
                for line in 0..agents {
                    let row: f64 = a[line * agents..][..agents].iter().sum();
                    let column: f64 = b[line..].iter().step_by(agents).sum();
                    prop_assert!((row - 1.0).abs() <= 1e-9 && (column - 1.0).abs() <= 1e-9);
                }
            }
        }
    }
}
