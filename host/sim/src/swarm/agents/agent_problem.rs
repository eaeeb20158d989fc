//! The problem of one agent, which shares ownership of the task that it reads.

use crate::task::Task;
use fabswarm_shared::problem::Problem;
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

macro_rules! share {
    ($self:ident, $problem:ident => $call:expr) => {{
        let $problem = &$self.task.problem($self.agent);
        $call
    }};
}

impl Problem<f32> for AgentProblem {
    fabswarm_shared::delegate_problem!(share, f32);
}
