//! Push-ASGD (Chen, Hashemi and Vikalo, 2025): push-sum and tracking of gradients with momentum β. We read its "gradient
//! acceleration" as the recursive momentum that reaches the complexity $O(\varepsilon^{-1.5})$ it proves:
//!
//! $$m^{k+1} = \nabla f(z^{k+1};\xi^{k+1}) + (1-\beta)\,\bigl(m^k - \nabla f(z^k;\xi^{k+1})\bigr),\qquad
//!   t^{k+1} = B^k t^k + m^{k+1} - m^k$$
//!
//! with $u^{k+1} = B^k(u^k - \eta\,t^k)$, $w^{k+1} = B^k w^k$ and $z = u/w$. Without noise m is the gradient, and the method
//! Push-DIGing; with noise β = 1 is.

use crate::row_ops::RowOps;

/// Mass, push-sum weights, their ratio, trackers and momentum.
#[derive(Clone, Debug)]
pub struct PushAsgd<V> {
    u: V,
    pub(super) w: Vec<f64>,
    z: V,
    t: V,
    m: V,
    momentum: f64,
}

impl<V: Clone> PushAsgd<V> {
    pub(super) fn start(ops: &mut impl RowOps<Value = V>, v: V, momentum: f64) -> Self {
        let m = ops.gradient(&v);
        Self { u: v.clone(), w: vec![1.0; ops.agents()], z: v, t: m.clone(), m, momentum }
    }

    pub(super) fn step(&mut self, ops: &mut impl RowOps<Value = V>) {
        let descended = ops.descend(&self.u, &self.t, 1.0);
        self.u = ops.push(&descended);
        self.w = ops.push_weights(&self.w);
        let ratio = ops.divide(&self.u, &self.w);
        let z = ops.project(&ratio);
        let gradient = ops.gradient(&z);
        let before = ops.gradient_again(&self.z);
        let kept = ops.add(&self.m, -1.0, &before);
        let newest = ops.add(&gradient, 1.0 - self.momentum, &kept);
        self.t = ops.track(&self.t, &newest, &self.m);
        (self.z, self.m) = (z, newest);
    }

    pub(super) const fn estimate(&self) -> &V {
        &self.z
    }
}
