//! The policy-evaluation task as a problem of one level, eq. (16):
//! $f_i(x) = \tfrac{c_f}{2}\lVert\Phi x - (r_i + N x)\rVert^2 + \tfrac\tau2\lVert x\rVert^2$.
//!
//! Its minimum is the x* of the bilevel problem, because the lower level can be solved in closed form and its solution is
//! linear in the rewards. Methods of one level run on it.

use std::rc::Rc;

use fabswarm_shared::problem::{AnyProblem, NoiseKey, Problem};
use fabswarm_sim::task::{Task, TaskProblem};

use fabswarm_sim::method::{Network, Oracle};

/// The gradient of the regularised Bellman error, at rows x.
#[derive(Clone, Debug)]
pub(crate) struct BellmanError {
    task: Rc<Task<f64>>,
}

impl BellmanError {
    /// The Bellman error of a task of policy evaluation; other tasks have none.
    pub(crate) fn new(task: Rc<Task<f64>>) -> Self {
        assert!(matches!(*task, Task::PolicyEvaluation(_)), "a setting draws tasks of policy evaluation");
        Self { task }
    }

    /// One agent's gradient at `x`.
    fn gradient(&self, agent: usize, round: u32, x: &[f64]) -> Vec<f64> {
        let TaskProblem::BuiltIn(AnyProblem::PolicyEvaluation(problem)) = self.task.problem(agent) else {
            unreachable!("`new` takes tasks of policy evaluation only");
        };
        let states = self.task.shape().y;
        let (mut dx, mut target) = (vec![0.0; x.len()], vec![0.0; states]);
        let at = NoiseKey { agent: agent as u32, round };
        // ∇_y g at y = 0 is −c_g times what y should be.
        problem.lower_gradient(at, x, &vec![0.0; states], &mut dx, &mut target, &mut []);
        target.iter_mut().for_each(|target| *target /= -problem.lower_weight);
        let mut dy = vec![0.0; states];
        problem.upper_gradient(x, &target, &mut dx, &mut dy, &mut []);
        for (dx, column) in dx.iter_mut().zip(problem.successors.chunks_exact(states)) {
            *dx += column.iter().zip(&dy).map(|(n, dy)| n * dy).sum::<f64>();
        }
        dx
    }
}

impl Oracle for BellmanError {
    fn words(&self) -> usize {
        self.task.shape().x
    }

    fn gradients(&mut self, network: &mut Network, v: &[f64]) -> Vec<f64> {
        let rows = v.chunks_exact(self.words()).enumerate();
        rows.flat_map(|(agent, x)| self.gradient(agent, network.round(), x)).collect()
    }
}
