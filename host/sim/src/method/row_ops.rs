//! Operations on the states of all agents. A method over them runs on arrays, and on a tape that differentiates through it.

use std::rc::Rc;

use super::links::{LinkWeights, Matrix};
use super::network::Network;
use super::oracle::Oracle;

/// Operations on packed states, one row per agent.
pub trait RowOps {
    /// The states of all agents.
    type Value: Clone;

    /// `A·v` or `B·v`.
    fn mix(&mut self, matrix: Matrix, v: &Self::Value) -> Self::Value;
    /// `B·w` for one push-sum weight per agent.
    fn push_weights(&mut self, w: &[f64]) -> Vec<f64>;
    /// `v − s·η∘t`, with the step size η of each word.
    fn descend(&mut self, v: &Self::Value, t: &Self::Value, scale: f64) -> Self::Value;
    /// `v + s·u`.
    fn add(&mut self, v: &Self::Value, scale: f64, u: &Self::Value) -> Self::Value;
    /// Each row of `v` over its weight.
    fn divide(&mut self, v: &Self::Value, w: &[f64]) -> Self::Value;
    /// Rows brought back into the set that the problem allows, where it has bounds.
    fn project(&mut self, v: &Self::Value) -> Self::Value {
        v.clone()
    }
    /// Local gradients, with the noise of this round.
    fn gradient(&mut self, v: &Self::Value) -> Self::Value;
    /// Local gradients at another point with the noise of the last ones.
    fn gradient_again(&mut self, v: &Self::Value) -> Self::Value {
        self.gradient(v)
    }
    /// Number of agents.
    fn agents(&self) -> usize;

    /// `B·t + d⁺ − d`, the tracker of all methods that track gradients.
    fn track(&mut self, t: &Self::Value, newest: &Self::Value, last: &Self::Value) -> Self::Value {
        let pushed = self.mix(Matrix::Push, t);
        let added = self.add(&pushed, 1.0, newest);
        self.add(&added, -1.0, last)
    }
}

/// The operations on arrays, with the gradients of an oracle.
#[derive(Debug)]
pub struct Arrays<O> {
    /// The network.
    pub network: Network,
    /// The problem.
    pub oracle: O,
    /// η of each word of a row.
    pub steps: Vec<f64>,
    /// The gradients that were taken last.
    pub d: Vec<f64>,
    links: Rc<LinkWeights>,
}

impl<O: Oracle> Arrays<O> {
    /// At rest before the first round.
    pub fn new(network: Network, oracle: O, steps: Vec<f64>) -> Self {
        let links = Rc::new(LinkWeights::none(network.agents()));
        Self { network, oracle, steps, d: Vec::new(), links }
    }

    /// Goes on to the links of the next round.
    pub fn begin_round(&mut self) {
        self.links = self.network.next_round();
    }
}

impl<O: Oracle> RowOps for Arrays<O> {
    type Value = Vec<f64>;

    fn mix(&mut self, matrix: Matrix, v: &Vec<f64>) -> Vec<f64> {
        let (words, first) = (self.oracle.words(), self.oracle.first_exchanged());
        self.network.count(&self.links, words - first);
        self.links.mix(matrix, v, words, first)
    }

    fn push_weights(&mut self, w: &[f64]) -> Vec<f64> {
        self.network.count(&self.links, 1);
        self.links.mix(Matrix::Push, w, 1, 0)
    }

    fn descend(&mut self, v: &Vec<f64>, t: &Vec<f64>, scale: f64) -> Vec<f64> {
        descended(&self.steps, v, t, scale)
    }

    fn add(&mut self, v: &Vec<f64>, scale: f64, u: &Vec<f64>) -> Vec<f64> {
        added(v, scale, u)
    }

    fn divide(&mut self, v: &Vec<f64>, w: &[f64]) -> Vec<f64> {
        divided(v, w, self.oracle.first_exchanged())
    }

    fn project(&mut self, v: &Vec<f64>) -> Vec<f64> {
        let mut v = v.clone();
        v.chunks_exact_mut(self.oracle.words()).for_each(|row| self.oracle.project(row));
        v
    }

    fn gradient(&mut self, v: &Vec<f64>) -> Vec<f64> {
        self.d = self.oracle.gradients(&mut self.network, v);
        self.d.clone()
    }

    fn gradient_again(&mut self, v: &Vec<f64>) -> Vec<f64> {
        self.oracle.gradients_again(&mut self.network, v)
    }

    fn agents(&self) -> usize {
        self.network.agents()
    }
}

/// `v − s·η∘t`, row by row.
pub(super) fn descended(steps: &[f64], v: &[f64], t: &[f64], scale: f64) -> Vec<f64> {
    let steps = steps.iter().cycle();
    v.iter().zip(t).zip(steps).map(|((v, t), step)| v - scale * step * t).collect()
}

/// `v + s·u`.
pub(super) fn added(v: &[f64], scale: f64, u: &[f64]) -> Vec<f64> {
    v.iter().zip(u).map(|(v, u)| v + scale * u).collect()
}

/// Each row over its weight. Words before `first` belong to their agent alone and have none.
pub(super) fn divided(v: &[f64], w: &[f64], first: usize) -> Vec<f64> {
    let mut v = v.to_vec();
    let words = v.len() / w.len();
    for (row, w) in v.chunks_exact_mut(words).zip(w) {
        row[first..].iter_mut().for_each(|word| *word /= w);
    }
    v
}
