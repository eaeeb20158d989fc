//! SGP, also called Push-SGD (Nedić and Olshevsky, 2016; Assran et al., 2019): descend, then push, with a constant step:
//!
//! $$x^{k+1} = B^k\,(x^k - \eta\nabla f(z^k)),\quad w^{k+1} = B^k w^k,\quad z^{k+1} = x^{k+1}/w^{k+1}$$

use crate::row_ops::RowOps;

/// Mass, push-sum weights and their ratio.
#[derive(Clone, Debug)]
pub struct PushSgd<V> {
    x: V,
    pub(super) w: Vec<f64>,
    z: V,
}

impl<V: Clone> PushSgd<V> {
    pub(super) fn start(ops: &mut impl RowOps<Value = V>, v: V) -> Self {
        Self { x: v.clone(), w: vec![1.0; ops.agents()], z: v }
    }

    pub(super) fn step(&mut self, ops: &mut impl RowOps<Value = V>) {
        let d = ops.gradient(&self.z);
        let descended = ops.descend(&self.x, &d, 1.0);
        self.x = ops.push(&descended);
        self.w = ops.push_weights(&self.w);
        let ratio = ops.divide(&self.x, &self.w);
        self.z = ops.project(&ratio);
    }

    pub(super) const fn estimate(&self) -> &V {
        &self.z
    }
}
