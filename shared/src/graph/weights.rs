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

/// Where a matrix fails to be stochastic.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NotStochastic {
    /// It is not a square of this many agents.
    #[error("it is not n × n")]
    Size,
    /// This entry is negative, infinite or NaN.
    #[error("entry [{row}][{column}] is negative or NaN")]
    Entry {
        /// Row of the entry.
        row: usize,
        /// Column of the entry.
        column: usize,
    },
    /// This row (of A) or column (of B) does not sum to one.
    #[error("line {index} sums to {sum} instead of 1 (rows of A and columns of B must sum to 1)")]
    Sum {
        /// Which row or column.
        index: usize,
        /// Its sum.
        sum: f64,
    },
}

fn check(matrix: &[f64], agents: usize, at: impl Fn(usize, usize) -> usize) -> Result<(), NotStochastic> {
    if agents.checked_mul(agents) != Some(matrix.len()) {
        return Err(NotStochastic::Size);
    }
    for line in 0..agents {
        let mut sum = 0.0;
        for entry in 0..agents {
            let place = at(line, entry);
            let value = matrix[place];
            if !(value >= 0.0 && value.is_finite()) {
                return Err(NotStochastic::Entry { row: place / agents, column: place % agents });
            }
            sum += value;
        }
        if (sum - 1.0).abs() > 1e-9 {
            return Err(NotStochastic::Sum { index: line, sum });
        }
    }
    Ok(())
}

/// Checks that every row of a row-major matrix is non-negative and sums to one.
///
/// # Errors
/// Where it does not.
pub fn check_row_stochastic(matrix: &[f64], agents: usize) -> Result<(), NotStochastic> {
    check(matrix, agents, |row, column| row * agents + column)
}

/// Checks that every column of a row-major matrix is non-negative and sums to one.
///
/// # Errors
/// Where it does not.
pub fn check_column_stochastic(matrix: &[f64], agents: usize) -> Result<(), NotStochastic> {
    check(matrix, agents, |column, row| row * agents + column)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::graph::{Graph, Schedule, Topology};
    use proptest::prelude::*;
    use std::vec;

    #[test]
    fn checks_name_what_is_wrong() {
        assert_eq!(check_row_stochastic(&[0.5, 0.5, 0.3, 0.7], 2), Ok(()));
        let sum = check_column_stochastic(&[0.5, 0.5, 0.25, 0.75], 2);
        assert_eq!(sum, Err(NotStochastic::Sum { index: 0, sum: 0.75 }));
        let entry = check_row_stochastic(&[0.5, 0.5, 1.5, -0.5], 2);
        assert_eq!(entry, Err(NotStochastic::Entry { row: 1, column: 1 }));
        assert_eq!(check_row_stochastic(&[1.0; 3], 2), Err(NotStochastic::Size));
    }

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
                prop_assert_eq!(check_row_stochastic(&a, agents), Ok(()));
                prop_assert_eq!(check_column_stochastic(&b, agents), Ok(()));
            }
        }
    }
}
