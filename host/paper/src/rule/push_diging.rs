//! Push-DIGing (Nedić, Olshevsky and Shi, 2017): push-sum and gradient tracking by the same column-stochastic matrices:
//!
//! $$u^{k+1} = B^k (u^k - \eta\,t^k),\quad w^{k+1} = B^k w^k,\quad x^{k+1} = u^{k+1}/w^{k+1},\quad
//!   t^{k+1} = B^k t^k + \nabla f(x^{k+1}) - \nabla f(x^k)$$
//!
//! On the penalty function it is the paper's PushSum_FAB.

use crate::row_ops::RowOps;

/// Mass, push-sum weights, their ratio, trackers and last gradients.
#[derive(Clone, Debug)]
pub struct PushDiging<V> {
    u: V,
    pub(super) w: Vec<f64>,
    x: V,
    t: V,
    d: V,
}

impl<V: Clone> PushDiging<V> {
    pub(super) fn start(ops: &mut impl RowOps<Value = V>, v: V) -> Self {
        let d = ops.gradient(&v);
        Self { u: v.clone(), w: vec![1.0; ops.agents()], x: v, t: d.clone(), d }
    }

    pub(super) fn step(&mut self, ops: &mut impl RowOps<Value = V>) {
        let descended = ops.descend(&self.u, &self.t, 1.0);
        self.u = ops.push(&descended);
        self.w = ops.push_weights(&self.w);
        let ratio = ops.divide(&self.u, &self.w);
        self.x = ops.project(&ratio);
        let newest = ops.gradient(&self.x);
        self.t = ops.track(&self.t, &newest, &self.d);
        self.d = newest;
    }

    pub(super) const fn estimate(&self) -> &V {
        &self.x
    }
}
