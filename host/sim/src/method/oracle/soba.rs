//! The directions of SOBA (Dagréou et al., 2022), the paper's eq. (local_grad_soba), at rows `[x | y | v]`:
//!
//! $$d_y = \nabla_y g,\qquad d_v = \nabla^2_{yy} g\,v - \nabla_y f,\qquad d_x = \nabla_x f - \nabla^2_{xy} g\,v$$
//!
//! At rest v solves $\nabla^2_{yy} G\,v = \nabla_y F$, which makes d_x the hypergradient.

use std::rc::Rc;

use crate::task::Task;
use fabswarm_shared::problem::Shape;

use super::{LowerLevel, Oracle};
use crate::method::network::Network;

/// SOBA's directions of all agents.
#[derive(Clone, Debug)]
pub struct SobaDirection {
    lower: LowerLevel,
    shape: Shape,
}

impl SobaDirection {
    /// For `agents` agents of a task.
    pub fn new(task: Rc<Task<f64>>, agents: usize) -> Self {
        Self { shape: task.shape(), lower: LowerLevel::new(task, agents) }
    }
}

impl Oracle for SobaDirection {
    fn words(&self) -> usize {
        self.shape.words()
    }

    fn first_exchanged(&self) -> usize {
        self.shape.exchanged().start
    }

    fn project(&self, row: &mut [f64]) {
        self.lower.project(row);
    }

    fn gradients(&mut self, network: &mut Network, rows: &[f64]) -> Vec<f64> {
        let (mut x, mut y, mut v) = (Vec::new(), Vec::new(), Vec::new());
        for (of_x, of_y, of_v) in rows.chunks_exact(self.words()).map(|row| self.shape.split(row)) {
            x.extend(of_x);
            y.extend(of_y);
            v.extend(of_v);
        }
        let lower = self.lower.gradients_at(&x, &y, network.round());
        let (mut dx, dy) = self.lower.upper_gradients(&x, &y);
        let (cross, mut dv) = self.lower.second_derivatives(&x, &y, &v);
        dx.iter_mut().zip(cross).for_each(|(dx, cross)| *dx -= cross);
        dv.iter_mut().zip(dy).for_each(|(dv, dy)| *dv -= dy);
        let Shape { x, y, .. } = self.shape;
        let rows = dx.chunks_exact(x).zip(lower.chunks_exact(y)).zip(dv.chunks_exact(y));
        rows.flat_map(|((dx, dy), dv)| [dx, dy, dv].concat()).collect()
    }
}
