//! What agents say at the beginning of a round of plain FAB.

use super::{Constants, Mixing, said_stride, stride};
use crate::swarm::links::Block;
use fabswarm_shared::linear::{copy, scaled};
use fabswarm_shared::problem::Shape;
use fabswarm_shared::scalar::Scalar;
use pulp::{Arch, NullaryFnOnce};

/// What all blocks read.
pub(super) struct Speech<'a, S> {
    pub(super) constants: &'a Constants<S>,
    pub(super) shape: Shape,
    pub(super) v: &'a [S],
    pub(super) t: &'a [S],
    /// How many hear each agent.
    pub(super) listeners: &'a [u32],
}

/// One block's work, as something that is compiled for the registers of this machine.
struct Speak<'r, 'a, 'p, S> {
    speech: &'r Speech<'a, S>,
    block: &'p Block,
    said: &'p mut [S],
}

impl<S: Scalar> NullaryFnOnce for Speak<'_, '_, '_, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.speech.speak_for_all(self.block, self.said);
    }
}

impl<S: Scalar> Speech<'_, S> {
    /// The decision of each agent of a block, and the share of its tracker that all who hear it get. Where they get different
    /// ones that is the whole tracker.
    pub(super) fn speak(&self, block: &Block, said: &mut [S]) {
        Arch::new().dispatch(Speak { speech: self, block, said });
    }

    #[inline(always)]
    fn speak_for_all(&self, block: &Block, said: &mut [S]) {
        let (stride, half) = (stride(&self.shape), said_stride(&self.shape));
        let local = self.shape.exchanged().start;
        for (agent, said) in block.agents().zip(said.chunks_exact_mut(2 * half)) {
            let share = match &self.constants.mixing {
                Mixing::Degrees(weights) => weights.push(self.listeners[agent] as usize).1,
                Mixing::Explicit { .. } => S::ONE,
            };
            let (decision, mass) = said.split_at_mut(half);
            // With the zeros at its end a row is whole vector registers, which cost less than what is left of them.
            let own = agent * stride + local..(agent + 1) * stride;
            copy(&self.v[own.clone()], decision);
            scaled(share, &self.t[own], mass);
        }
    }
}
