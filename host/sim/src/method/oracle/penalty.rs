//! The gradient of the penalty function, eq. (7): what FAB and its variants descend along.

use std::rc::Rc;

use crate::task::Task;
use fabswarm_shared::problem::{NoiseKey, Penalty, Problem};

use super::Oracle;
use crate::method::network::Network;

/// `d_i` of every agent, at rows `[x | y | z]`.
#[derive(Clone, Debug)]
pub struct PenaltyGradient {
    task: Rc<Task<f64>>,
    penalty: Penalty<f64>,
}

impl PenaltyGradient {
    /// For a task with a penalty on its lower level.
    pub const fn new(task: Rc<Task<f64>>, penalty: Penalty<f64>) -> Self {
        Self { task, penalty }
    }

    fn take_gradient(&self, agent: usize, round: u32, v: &[f64], d: &mut [f64]) {
        let problem = self.task.problem(agent);
        let mut scratch = vec![0.0; problem.scratch_words()];
        let at = NoiseKey { agent: agent as u32, round };
        problem.penalty_gradient(&self.penalty, at, v, d, &mut scratch);
    }
}

impl Oracle for PenaltyGradient {
    fn words(&self) -> usize {
        self.task.shape().words()
    }

    fn first_exchanged(&self) -> usize {
        self.task.shape().exchanged().start
    }

    fn gradients(&mut self, network: &mut Network, v: &[f64]) -> Vec<f64> {
        let mut d = vec![0.0; v.len()];
        let words = self.words();
        for (agent, (v, d)) in v.chunks_exact(words).zip(d.chunks_exact_mut(words)).enumerate() {
            self.take_gradient(agent, network.round(), v, d);
        }
        d
    }

    fn project(&self, row: &mut [f64]) {
        self.task.project(row);
    }
}

/// The mean of all agents' `d_i` at one common row, as a single machine computes it.
#[derive(Clone, Debug)]
pub struct MeanPenaltyGradient {
    local: PenaltyGradient,
    agents: usize,
}

impl MeanPenaltyGradient {
    /// The mean over the first `agents` agents of the task.
    pub const fn new(local: PenaltyGradient, agents: usize) -> Self {
        Self { local, agents }
    }
}

impl Oracle for MeanPenaltyGradient {
    fn words(&self) -> usize {
        self.local.words()
    }

    fn gradients(&mut self, network: &mut Network, v: &[f64]) -> Vec<f64> {
        let (mut mean, mut d) = (vec![0.0; v.len()], vec![0.0; v.len()]);
        for agent in 0..self.agents {
            self.local.take_gradient(agent, network.round(), v, &mut d);
            mean.iter_mut().zip(&d).for_each(|(mean, d)| *mean += d / self.agents as f64);
        }
        mean
    }

    fn project(&self, row: &mut [f64]) {
        self.local.project(row);
    }
}
