//! Subgradient-push (Nedić and Olshevsky, 2015): gradients on top of push-sum, with a diminishing step:
//!
//! $$u^{k+1} = B^k x^k,\quad w^{k+1} = B^k w^k,\quad z^{k+1} = u^{k+1}/w^{k+1},\quad
//!   x^{k+1} = u^{k+1} - \tfrac{\eta}{\sqrt{k+1}}\nabla f(z^{k+1})$$

use crate::row_ops::RowOps;

/// Mass, push-sum weights and their ratio.
#[derive(Clone, Debug)]
pub struct SubgradientPush<V> {
    x: V,
    pub(super) w: Vec<f64>,
    z: V,
    rounds: u32,
}

impl<V: Clone> SubgradientPush<V> {
    pub(super) fn start(ops: &mut impl RowOps<Value = V>, v: V) -> Self {
        Self { x: v.clone(), w: vec![1.0; ops.agents()], z: v, rounds: 0 }
    }

    pub(super) fn step(&mut self, ops: &mut impl RowOps<Value = V>) {
        let u = ops.push(&self.x);
        self.w = ops.push_weights(&self.w);
        let ratio = ops.divide(&u, &self.w);
        self.z = ops.project(&ratio);
        self.rounds += 1;
        let d = ops.gradient(&self.z);
        self.x = ops.descend(&u, &d, 1.0 / f64::from(self.rounds).sqrt());
    }

    pub(super) const fn estimate(&self) -> &V {
        &self.z
    }
}
