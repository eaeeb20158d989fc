//! The problem of one agent, which shares ownership of the task that it reads.

use crate::task::{Task, TaskProblem};
use fabswarm_shared::problem::{Problem, refresh};
use std::sync::Arc;

/// The problem of one agent of a task.
#[derive(Clone, Debug)]
pub struct AgentProblem {
    task: Arc<Task<f32>>,
    agent: usize,
    /// The values of its readings, once a fresh one has replaced one of them.
    fresh: Vec<f32>,
}

impl AgentProblem {
    /// The problem of `agent`.
    pub fn new(task: Arc<Task<f32>>, agent: usize) -> Self {
        Self { task, agent, fresh: Vec::new() }
    }

    #[inline]
    fn present(&self) -> TaskProblem<'_, f32> {
        match self.task.problem(self.agent) {
            TaskProblem::BuiltIn(given) if !self.fresh.is_empty() => {
                TaskProblem::BuiltIn(given.with_readings(&self.fresh))
            }
            given => given,
        }
    }
}

macro_rules! share {
    ($self:ident, $problem:ident => $call:expr) => {{
        let $problem = &$self.present();
        $call
    }};
}

impl Problem<f32> for AgentProblem {
    fabswarm_shared::delegate_problem!(share, f32);

    fn take_reading(&mut self, round: u32, value: f32) {
        if let (true, TaskProblem::BuiltIn(given)) = (self.fresh.is_empty(), self.task.problem(self.agent)) {
            self.fresh = given.readings().to_vec();
        }
        refresh(&mut self.fresh, round, value);
    }
}
