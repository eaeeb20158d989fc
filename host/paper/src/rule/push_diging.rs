//! Push-sum and gradient tracking by the same column-stochastic matrices, in two orders. Push-DIGing (Nedić, Olshevsky and Shi,
//! 2017) descends before it pushes:
//!
//! $$u^{k+1} = B^k (u^k - \eta\,t^k),\quad w^{k+1} = B^k w^k,\quad x^{k+1} = u^{k+1}/w^{k+1},\quad
//!   t^{k+1} = B^k t^k + \nabla f(x^{k+1}) - \nabla f(x^k)$$
//!
//! On the penalty function it is the paper's PushSum_FAB. Push-SAGA (Qureshi, Xin, Kar and Khan, 2020) descends after it,
//! $u^{k+1} = B^k u^k - \eta\,t^k$, along SAGA estimates of the local gradients.
//!
//! A SAGA estimate is the gradient of one sample, corrected by a table of all samples' last gradients. As in the paper, agents
//! here use full batches: the table has one entry, which cancels, and the estimate is ∇f(x). What is left is ADD-OPT (Xi, Xin and
//! Khan, 2018), a method that tracks gradients; it is not Push-SGD, as the paper says, which does not.

use crate::row_ops::RowOps;

/// Mass, push-sum weights, their ratio, trackers and last gradients.
#[derive(Clone, Debug)]
pub struct PushDiging<V> {
    u: V,
    pub(super) w: Vec<f64>,
    x: V,
    t: V,
    d: V,
    is_saga: bool,
}

impl<V: Clone> PushDiging<V> {
    pub(super) fn start(ops: &mut impl RowOps<Value = V>, v: V, is_saga: bool) -> Self {
        let d = ops.gradient(&v);
        Self { u: v.clone(), w: vec![1.0; ops.agents()], x: v, t: d.clone(), d, is_saga }
    }

    pub(super) fn step(&mut self, ops: &mut impl RowOps<Value = V>) {
        self.u = if self.is_saga {
            let pushed = ops.push(&self.u);
            ops.descend(&pushed, &self.t, 1.0)
        } else {
            let descended = ops.descend(&self.u, &self.t, 1.0);
            ops.push(&descended)
        };
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
