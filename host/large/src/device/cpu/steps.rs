//! Which function does which operation.

use super::agent::{AgentPass, Workspace};
use super::{images, matrix, norms, pointwise, text};
use crate::program::Buffer;
use crate::program::Op;
use crate::program::arena::Arena;
use crate::real::Real;

impl<S: Real> AgentPass<'_, S> {
    /// Runs operations in order.
    pub(super) fn run(&mut self, ops: &[Op], arena: &Arena, buffers: &[Buffer], words: &mut [S]) {
        let mut memory = Workspace { arena, buffers, words };
        for op in ops {
            self.step(op, &mut memory);
        }
    }

    fn step(&mut self, op: &Op, memory: &mut Workspace<'_, S>) {
        match *op {
            Op::Gemm(ref gemm) => matrix::gemm(self, memory, gemm),
            Op::Activate { .. }
            | Op::ActivateBackward { .. }
            | Op::BiasGradient { .. }
            | Op::Dropout { .. } => {
                pointwise::step(self, memory, op);
            }
            Op::CrossEntropy { logits, bias, classes } => {
                pointwise::cross_entropy(self, memory.one(logits), bias, classes)
            }
            Op::ClearGradient { offset, words } => self.gradient[offset..offset + words].fill(S::ZERO),
            Op::Patches { .. } | Op::PatchesBackward { .. } | Op::Pool { .. } | Op::PoolBackward { .. } => {
                images::step(self, memory, op);
            }
            Op::Norm { .. } | Op::NormBackward { .. } | Op::NormGradient { .. } => {
                norms::step(self, memory, op)
            }
            Op::Embed { .. }
            | Op::EmbedBackward { .. }
            | Op::AttentionSoftmax { .. }
            | Op::AttentionSoftmaxBackward { .. }
            | Op::FirstRows { .. }
            | Op::FirstRowsBackward { .. } => text::step(self, memory, op),
        }
    }
}
