//! The problem of one agent, which shares ownership of the task that it reads.

use crate::task::Task;
use fabswarm_shared::problem::{Mismatch, Moment, Penalty, Problem, Shape};
use std::sync::Arc;

/// The problem of one agent of a task.
#[derive(Clone, Debug)]
pub struct AgentProblem {
    task: Arc<Task<f32>>,
    agent: usize,
}

impl AgentProblem {
    /// The problem of `agent`.
    pub fn new(task: Arc<Task<f32>>, agent: usize) -> Self {
        Self { task, agent }
    }
}

impl Problem<f32> for AgentProblem {
    fn shape(&self) -> Shape {
        self.task.problem(self.agent).shape()
    }
    fn check(&self) -> Result<(), Mismatch> {
        self.task.problem(self.agent).check()
    }
    fn oracle_words(&self) -> usize {
        self.task.problem(self.agent).oracle_words()
    }

    fn scratch_words(&self) -> usize {
        self.task.problem(self.agent).scratch_words()
    }
    fn upper_value(&self, x: &[f32], y: &[f32], scratch: &mut [f32]) -> f32 {
        self.task.problem(self.agent).upper_value(x, y, scratch)
    }
    fn lower_value(&self, x: &[f32], y: &[f32], scratch: &mut [f32]) -> f32 {
        self.task.problem(self.agent).lower_value(x, y, scratch)
    }
    fn upper_gradient(&self, x: &[f32], y: &[f32], dx: &mut [f32], dy: &mut [f32], scratch: &mut [f32]) {
        self.task.problem(self.agent).upper_gradient(x, y, dx, dy, scratch);
    }
    fn lower_gradient(
        &self,
        at: Moment,
        x: &[f32],
        y: &[f32],
        dx: &mut [f32],
        dy: &mut [f32],
        scratch: &mut [f32],
    ) {
        self.task.problem(self.agent).lower_gradient(at, x, y, dx, dy, scratch);
    }
    fn project(&self, x: &mut [f32]) {
        self.task.problem(self.agent).project(x);
    }
    fn penalty_gradient(
        &self,
        penalty: &Penalty<f32>,
        at: Moment,
        v: &[f32],
        d: &mut [f32],
        scratch: &mut [f32],
    ) {
        self.task.problem(self.agent).penalty_gradient(penalty, at, v, d, scratch);
    }
}
