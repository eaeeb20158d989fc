//! What agents broadcast at the start of a round of plain FAB.

use super::{FabConstants, MixingRule, exchanged_stride, stride};
use crate::swarm::links::LinkBlock;
use fabswarm_shared::linear::{copy, scaled};
use fabswarm_shared::problem::Shape;
use fabswarm_shared::scalar::Scalar;
use pulp::{Arch, NullaryFnOnce};

/// What all blocks read.
pub(super) struct PlainBroadcast<'a, S> {
    pub(super) constants: &'a FabConstants<S>,
    pub(super) shape: Shape,
    pub(super) v: &'a [S],
    pub(super) t: &'a [S],
    /// How many hear each agent.
    pub(super) listeners: &'a [u32],
}

/// The work on one block, compiled for the vector registers of this machine.
struct PlainBroadcastKernel<'r, 'a, 'p, S> {
    broadcast: &'r PlainBroadcast<'a, S>,
    block: &'p LinkBlock,
    broadcasts: &'p mut [S],
}

impl<S: Scalar> NullaryFnOnce for PlainBroadcastKernel<'_, '_, '_, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.broadcast.write_block(self.block, self.broadcasts);
    }
}

impl<S: Scalar> PlainBroadcast<'_, S> {
    /// The decision of each agent of a block, and the share of its tracker that all who hear it get. Where they get different
    /// ones that is the whole tracker.
    pub(super) fn write(&self, block: &LinkBlock, broadcasts: &mut [S]) {
        Arch::new().dispatch(PlainBroadcastKernel { broadcast: self, block, broadcasts });
    }

    #[inline(always)]
    fn write_block(&self, block: &LinkBlock, broadcasts: &mut [S]) {
        let (stride, half) = (stride(&self.shape), exchanged_stride(&self.shape));
        let local = self.shape.exchanged().start;
        for (agent, broadcasts) in block.agents().zip(broadcasts.chunks_exact_mut(2 * half)) {
            let share = match &self.constants.mixing {
                MixingRule::Degrees(weights) => weights.push(self.listeners[agent] as usize).1,
                MixingRule::Explicit { .. } => S::ONE,
            };
            let (decision, mass) = broadcasts.split_at_mut(half);
            // With the zeros at its end a row is whole vector registers, which cost less than what is left of them.
            let own = agent * stride + local..(agent + 1) * stride;
            copy(&self.v[own.clone()], decision);
            scaled(share, &self.t[own], mass);
        }
    }
}
