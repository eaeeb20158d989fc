//! Broadcasts of agents at the start of a round of plain FAB.

use super::round::step;
use super::{ArrayFabConfig, MixingRule, exchanged_stride, stride};
use crate::swarm::links::LinkBlock;
use fabswarm_shared::fab::Order;
use fabswarm_shared::linear::{copy, scaled};
use fabswarm_shared::problem::Shape;
use fabswarm_shared::scalar::Scalar;
use pulp::{Arch, NullaryFnOnce};

/// The input of all blocks.
pub(super) struct PlainBroadcast<'a, S> {
    pub(super) constants: &'a ArrayFabConfig<S>,
    pub(super) shape: Shape,
    /// Each word's step size, as a row.
    pub(super) steps: &'a [S],
    pub(super) t: &'a [S],
    /// How many hear each agent.
    pub(super) listeners: &'a [u32],
}

/// One block of agents and what its thread writes.
pub(super) struct SendingBlock<'p, S> {
    pub(super) block: &'p LinkBlock,
    pub(super) v: &'p mut [S],
    /// Empty where there is no momentum.
    pub(super) m: &'p mut [S],
    pub(super) broadcasts: &'p mut [S],
}

/// The work on one block, compiled for the vector registers of this machine.
struct PlainBroadcastKernel<'r, 'a, 'p, S> {
    broadcast: &'r PlainBroadcast<'a, S>,
    part: SendingBlock<'p, S>,
}

impl<S: Scalar> NullaryFnOnce for PlainBroadcastKernel<'_, '_, '_, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.broadcast.write_block(self.part);
    }
}

impl<S: Scalar> PlainBroadcast<'_, S> {
    /// The decision of each agent of a block, and the share of its tracker that all who hear it get. Where they get different
    /// ones that is the whole tracker. Agents that adapt first descend here.
    pub(super) fn write(&self, part: SendingBlock<'_, S>) {
        Arch::new().dispatch(PlainBroadcastKernel { broadcast: self, part });
    }

    #[inline(always)]
    fn write_block(&self, part: SendingBlock<'_, S>) {
        let (stride, half) = (stride(&self.shape), exchanged_stride(&self.shape));
        let local = self.shape.exchanged().start;
        let rows = part.v.chunks_exact_mut(stride).zip(part.broadcasts.chunks_exact_mut(2 * half));
        let mut accumulators = part.m.chunks_exact_mut(stride);
        for (agent, (v, broadcasts)) in part.block.agents().zip(rows) {
            let m = accumulators.next().unwrap_or_default();
            let t = &self.t[agent * stride..][..stride];
            if self.constants.order == Order::AdaptFirst {
                step(self.constants.steps.momentum, self.steps, t, m, v);
            }
            let share = match &self.constants.mixing {
                MixingRule::Degrees(weights) => weights.push(self.listeners[agent] as usize).1,
                MixingRule::Explicit { .. } => S::ONE,
            };
            let (decision, mass) = broadcasts.split_at_mut(half);
            // With the zeros at its end a row is whole vector registers, which cost less than what is left of them.
            copy(&v[local..], decision);
            scaled(share, &t[local..], mass);
        }
    }
}
