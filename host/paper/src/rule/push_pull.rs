//! AB/Push-Pull over time-varying directed graphs, TV-AB (Saadatniaki, Xin and Khan, 2020; Nedić et al., 2025), the paper's
//! Algorithm 2:
//!
//! $$x^{k+1} = A^k x^k - \eta\,t^k,\qquad t^{k+1} = B^k t^k + \nabla f(x^{k+1}) - \nabla f(x^k)$$

use crate::row_ops::RowOps;

/// Decisions, trackers and last gradients.
#[derive(Clone, Debug)]
pub struct PushPull<V> {
    v: V,
    t: V,
    d: V,
}

impl<V: Clone> PushPull<V> {
    pub(super) fn start(ops: &mut impl RowOps<Value = V>, v: V) -> Self {
        let d = ops.gradient(&v);
        Self { v, t: d.clone(), d }
    }

    pub(super) fn step(&mut self, ops: &mut impl RowOps<Value = V>) {
        let pulled = ops.pull(&self.v);
        let descended = ops.descend(&pulled, &self.t, 1.0);
        self.v = ops.project(&descended);
        let newest = ops.gradient(&self.v);
        self.t = ops.track(&self.t, &newest, &self.d);
        self.d = newest;
    }

    pub(super) const fn estimate(&self) -> &V {
        &self.v
    }
}
