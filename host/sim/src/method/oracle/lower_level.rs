//! The lower level $\min_y \sum_i g_i(x_i, y)$ at fixed x, with its second derivatives.

use std::rc::Rc;

use crate::task::Task;
use fabswarm_shared::problem::{NoiseKey, Problem};

use super::without_noise;

/// `∇_y g_i` and the products of `g_i`'s second derivatives, for all agents.
#[derive(Clone, Debug)]
pub struct LowerLevel {
    task: Rc<Task<f64>>,
    agents: usize,
}

impl LowerLevel {
    /// The lower level of `agents` agents.
    pub const fn new(task: Rc<Task<f64>>, agents: usize) -> Self {
        Self { task, agents }
    }

    /// Number of agents.
    pub const fn agents(&self) -> usize {
        self.agents
    }

    /// Words of y.
    pub fn words(&self) -> usize {
        self.task.shape().y
    }

    /// Brings x, with which every row begins, back into its set.
    pub fn project(&self, row: &mut [f64]) {
        self.task.project(row);
    }

    /// Each agent's `∇_y g_i(x_i, y_i)` with the noise of `round`.
    pub fn gradients_at(&self, x: &[f64], y: &[f64], round: u32) -> Vec<f64> {
        let shape = self.task.shape();
        let (mut dx, mut dy) = (vec![0.0; shape.x], vec![0.0; y.len()]);
        let mut scratch = vec![0.0; self.task.problem(0).scratch_words()];
        let rows = x.chunks_exact(shape.x).zip(y.chunks_exact(shape.y)).zip(dy.chunks_exact_mut(shape.y));
        for (agent, ((x, y), dy)) in rows.enumerate() {
            let at = NoiseKey { agent: agent as u32, round };
            self.task.problem(agent).lower_gradient(at, x, y, &mut dx, dy, &mut scratch);
        }
        dy
    }

    /// Each agent's $\nabla^2_{xy} g_i\,u_i$ and $\nabla^2_{yy} g_i\,u_i$, by central differences of ∇g without noise. They
    /// are exact to rounding where g is quadratic. A user's problem computes in single precision and takes longer differences.
    pub fn second_derivatives(&self, x: &[f64], y: &[f64], u: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let shape = self.task.shape();
        let mut by_x = vec![0.0; self.agents * shape.x];
        let mut by_y = vec![0.0; self.agents * shape.y];
        let mut scratch = vec![0.0; self.task.problem(0).scratch_words()];
        let (mut before_x, mut before_y) = (vec![0.0; shape.x], vec![0.0; shape.y]);
        let (mut after_x, mut after_y) = (vec![0.0; shape.x], vec![0.0; shape.y]);
        let relative_step = if matches!(*self.task, Task::Own { .. }) { 1e-2 } else { 1e-4 };
        let size = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        for agent in 0..self.agents {
            let row = agent * shape.y..(agent + 1) * shape.y;
            let (x, y, u) = (&x[agent * shape.x..][..shape.x], &y[row.clone()], &u[row.clone()]);
            let length = size(u);
            if length == 0.0 {
                continue;
            }
            let step = relative_step * (1.0 + size(y)) / length;
            let moved = |step: f64| -> Vec<f64> { y.iter().zip(u).map(|(y, u)| y + step * u).collect() };
            let problem = without_noise(self.task.problem(agent));
            let at = NoiseKey { agent: agent as u32, round: 0 };
            problem.lower_gradient(at, x, &moved(-step), &mut before_x, &mut before_y, &mut scratch);
            problem.lower_gradient(at, x, &moved(step), &mut after_x, &mut after_y, &mut scratch);
            let slopes = |out: &mut [f64], after: &[f64], before: &[f64]| {
                for ((out, after), before) in out.iter_mut().zip(after).zip(before) {
                    *out = (after - before) / (2.0 * step);
                }
            };
            slopes(&mut by_x[agent * shape.x..][..shape.x], &after_x, &before_x);
            slopes(&mut by_y[row], &after_y, &before_y);
        }
        (by_x, by_y)
    }

    /// Each agent's `∇f_i(x_i, y_i)`: the parts in x and in y.
    pub fn upper_gradients(&self, x: &[f64], y: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let shape = self.task.shape();
        let (mut dx, mut dy) = (vec![0.0; x.len()], vec![0.0; y.len()]);
        let mut scratch = vec![0.0; self.task.problem(0).scratch_words()];
        let gradients = dx.chunks_exact_mut(shape.x).zip(dy.chunks_exact_mut(shape.y));
        let rows = x.chunks_exact(shape.x).zip(y.chunks_exact(shape.y)).zip(gradients);
        for (agent, ((x, y), (dx, dy))) in rows.enumerate() {
            self.task.problem(agent).upper_gradient(x, y, dx, dy, &mut scratch);
        }
        (dx, dy)
    }
}
