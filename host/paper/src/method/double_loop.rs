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

use fabswarm_sim::task::Task;
use fabswarm_sim::trial::BuildError;

use super::rule_on_oracle::RuleOnOracle;
use super::{Method, MethodStart};
use crate::experiment_config::ExperimentConfig;
use crate::links::LinkWeights;
use crate::network::Network;
use crate::oracle::{LowerLevel, Oracle};
use crate::rule::{Rule, RuleKind};
use crate::tape::Tape;

/// The hypergradient after T inner rounds, at rows x.
pub(super) struct Hypergradient {
    lower: LowerLevel,
    x_words: usize,
    rule: RuleKind,
    momentum: f64,
    inner_rounds: u32,
    /// η of the inner loop.
    steps: Vec<f64>,
    /// The start of the next inner loop.
    y: Vec<f64>,
    /// Start, links and first round of the last inner loop.
    last: (Vec<f64>, Vec<Rc<LinkWeights>>, u32),
}

impl Hypergradient {
    pub(super) fn new(rule: RuleKind, task: Rc<Task<f64>>, setting: &ExperimentConfig, step: f64) -> Self {
        let shape = task.shape();
        Self {
            x_words: shape.x,
            lower: LowerLevel::new(task, setting.agents),
            rule,
            momentum: setting.momentum,
            inner_rounds: setting.inner_rounds,
            steps: vec![step; shape.y],
            y: vec![0.0; setting.agents * shape.y],
            last: (Vec::new(), Vec::new(), 0),
        }
    }

    /// The result of the inner loop at `x`, and the hypergradient.
    pub(super) fn differentiate(&self, network: &mut Network, x: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (start, links, first) = &self.last;
        let mut tape = Tape::new(&self.lower, x, &self.steps);
        let start = tape.give(start.clone());
        if let Some(links) = links.first() {
            tape.begin_round(Rc::clone(links), *first);
        }
        let mut rule = Rule::start(self.rule, self.momentum, &mut tape, start);
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
        self.x_words
    }

    fn gradients(&mut self, network: &mut Network, x: &[f64]) -> Vec<f64> {
        let first = network.round() + 1;
        let links = (0..self.inner_rounds).map(|_| network.next_round()).collect();
        self.last = (std::mem::take(&mut self.y), links, first);
        let (y, by_x) = self.differentiate(network, x);
        self.y = y;
        by_x
    }

    fn gradients_again(&mut self, network: &mut Network, x: &[f64]) -> Vec<f64> {
        self.differentiate(network, x).1
    }
}

pub(super) fn start(rule: RuleKind, start: &MethodStart<'_>) -> Result<Box<dyn Method>, BuildError> {
    let words = start.task.shape().x;
    let oracle = Hypergradient::new(rule, Rc::clone(&start.task), start.setting, start.steps.lower);
    let steps = vec![start.steps.upper; words];
    Ok(Box::new(RuleOnOracle::new(start, start.network()?, rule, oracle, steps, &vec![0.0; words])))
}
