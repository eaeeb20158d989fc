//! Double loops with iterative differentiation (ITD; Franceschi et al., 2018; Grazzi et al., 2020), as the paper makes bilevel
//! methods of single-level ones: T rounds of the method on $\min_y \sum_i g_i(x_i, y)$ at fixed x, then one round of the
//! same method on x along
//!
//! $$h_j = \nabla_x f_j(x_j, y_j^T) + \sum_i \Bigl(\frac{\partial y_i^T}{\partial x_j}\Bigr)^{\!\top} \nabla_y f_i(x_i, y_i^T)$$
//!
//! The derivative is exact, through mixing too: what a program for automatic differentiation computes on one machine. Between
//! agents it must travel back over every link it came by, and we count it so: as many floats back as forth. The inner
//! loop starts where the last one ended.

use std::rc::Rc;

use fabswarm_shared::problem::Shape;

use super::{LowerLevel, Oracle};
use crate::method::links::LinkWeights;
use crate::method::network::Network;
use crate::method::rule::{Rule, RuleKind};
use crate::method::tape::Tape;
use crate::task::Task;

/// The inner loop of a double loop.
#[derive(Clone, Copy, Debug)]
pub struct InnerLoop {
    /// Its method.
    pub rule: RuleKind,
    /// β of Push-ASGD.
    pub momentum: f64,
    /// T.
    pub rounds: u32,
    /// η of y.
    pub step: f64,
}

/// The hypergradient after T inner rounds, at rows x.
#[derive(Clone, Debug)]
pub struct Hypergradient {
    lower: LowerLevel,
    shape: Shape,
    inner: InnerLoop,
    steps: Vec<f64>,
    /// The start of the next inner loop.
    y: Vec<f64>,
    /// Start, links and first round of the last inner loop.
    last: (Vec<f64>, Vec<Rc<LinkWeights>>, u32),
}

impl Hypergradient {
    /// The hypergradient of a task of `agents` agents, with y at its start.
    pub fn new(task: Rc<Task<f64>>, agents: usize, inner: InnerLoop) -> Self {
        let shape = task.shape();
        Self {
            steps: vec![inner.step; shape.y],
            y: shape.split(&task.start()).1.repeat(agents),
            lower: LowerLevel::new(task, agents),
            last: (Vec::new(), Vec::new(), 0),
            shape,
            inner,
        }
    }

    /// The result of the inner loop at `x`, and the hypergradient.
    pub fn differentiate(&self, network: &mut Network, x: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (start, links, first) = &self.last;
        let mut tape = Tape::new(&self.lower, x, &self.steps);
        let start = tape.give(start.clone());
        if let Some(links) = links.first() {
            tape.begin_round(Rc::clone(links), *first);
        }
        let mut rule = Rule::start(self.inner.rule, self.inner.momentum, &mut tape, start);
        let words = 2 * rule.words_per_link(self.lower.words());
        for (round, links) in links.iter().enumerate() {
            network.count(links, words);
            tape.begin_round(Rc::clone(links), first + round as u32);
            rule.step(&mut tape);
        }
        let y = *rule.estimate();
        let (mut by_x, by_y) = self.lower.upper_gradients(x, tape.value(y));
        let through_y = tape.differentiate(y, by_y);
        by_x.iter_mut().zip(through_y).for_each(|(by_x, through_y)| *by_x += through_y);
        (tape.value(y).to_vec(), by_x)
    }
}

impl Oracle for Hypergradient {
    fn words(&self) -> usize {
        self.shape.x
    }

    fn first_exchanged(&self) -> usize {
        self.shape.exchanged().start
    }

    fn project(&self, row: &mut [f64]) {
        self.lower.project(row);
    }

    /// y stands for z too.
    fn packed(&self, rows: &[f64], d: &[f64]) -> [Vec<f64>; 2] {
        let by_y = self.lower.gradients_at(rows, &self.y, self.last.2);
        let pack = |x: &[f64], y: &[f64]| {
            let rows = x.chunks_exact(self.shape.x).zip(y.chunks_exact(self.shape.y));
            rows.flat_map(|(x, y)| [x, y, y].concat()).collect()
        };
        [pack(rows, &self.y), pack(d, &by_y)]
    }

    fn gradients(&mut self, network: &mut Network, x: &[f64]) -> Vec<f64> {
        let first = network.round() + 1;
        let links = (0..self.inner.rounds).map(|_| network.next_round()).collect();
        self.last = (std::mem::take(&mut self.y), links, first);
        let (y, by_x) = self.differentiate(network, x);
        self.y = y;
        by_x
    }

    fn gradients_again(&mut self, network: &mut Network, x: &[f64]) -> Vec<f64> {
        self.differentiate(network, x).1
    }
}
