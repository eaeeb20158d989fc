//! Push-SAGA (Qureshi, Xin, Kar and Khan, 2020): push-sum and tracking of SAGA estimates g of the local gradients:
//!
//! $$u^{k+1} = B^k u^k - \eta\,t^k,\quad w^{k+1} = B^k w^k,\quad z^{k+1} = u^{k+1}/w^{k+1},\quad
//!   t^{k+1} = B^k t^k + g^{k+1} - g^k$$
//!
//! A SAGA estimate is the gradient of one sample, corrected by a table of all samples' last gradients. As in the paper, agents
//! here use full batches: the table has one entry, which cancels, and g = ∇f(z). What is left is ADD-OPT (Xi, Xin and Khan, 2018),
//! a method that tracks gradients; it is not Push-SGD, as the paper says, which does not.

use crate::row_ops::RowOps;

/// Mass, push-sum weights, their ratio, trackers and last estimates.
#[derive(Clone, Debug)]
pub struct PushSaga<V> {
    u: V,
    pub(super) w: Vec<f64>,
    z: V,
    t: V,
    g: V,
}

impl<V: Clone> PushSaga<V> {
    pub(super) fn start(ops: &mut impl RowOps<Value = V>, v: V) -> Self {
        let g = ops.gradient(&v);
        Self { u: v.clone(), w: vec![1.0; ops.agents()], z: v, t: g.clone(), g }
    }

    pub(super) fn step(&mut self, ops: &mut impl RowOps<Value = V>) {
        let pushed = ops.push(&self.u);
        self.u = ops.descend(&pushed, &self.t, 1.0);
        self.w = ops.push_weights(&self.w);
        let ratio = ops.divide(&self.u, &self.w);
        self.z = ops.project(&ratio);
        let newest = ops.gradient(&self.z);
        self.t = ops.track(&self.t, &newest, &self.g);
        self.g = newest;
    }

    pub(super) const fn estimate(&self) -> &V {
        &self.z
    }
}
