//! One agent during a pass: its memory, and which function does which operation.

use std::ops::Range;

use super::{images, matrix, norms, pointwise, text};
use crate::program::arena::Arena;
use crate::program::{Buffer, BufferPrecision, Id, MemorySpace, Op, View};
use crate::real::Real;

/// The memory that one agent reads and writes during a pass.
#[derive(Debug)]
pub(super) struct AgentPass<'a, S> {
    pub parameters: &'a [S],
    pub gradient: &'a mut [S],
    pub features: &'a [S],
    pub tokens: &'a [u32],
    pub lengths: &'a [u32],
    pub labels: &'a [u32],
    pub weights: &'a [S],
    pub losses: &'a mut [S],
    pub hits: &'a mut [S],
    /// Seed (low, high), round and number of the model: the key of its dropout masks.
    pub stream: [u32; 4],
}

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

/// Intermediate buffers of one agent and where each lies.
#[derive(Debug)]
pub(super) struct Workspace<'a, S> {
    pub arena: &'a Arena,
    pub buffers: &'a [Buffer],
    pub words: &'a mut [S],
}

/// Where the words from `offset` to the end of a buffer lie.
fn range_in(arena: &Arena, buffers: &[Buffer], id: Id, offset: usize) -> Range<usize> {
    let Buffer { words, precision } = buffers[id.0];
    let space = if precision == BufferPrecision::Exact { arena.activation_words() } else { 0 };
    let start = space + arena.offset(id);
    start + offset..start + words
}

impl<S: Real> Workspace<'_, S> {
    /// Where the words from `view` to the end of its buffer lie.
    fn range(&self, view: View) -> Range<usize> {
        let MemorySpace::Buffer(id) = view.place else {
            panic!("{view:?} is written to, but is not a buffer")
        };
        range_in(self.arena, self.buffers, id, view.offset)
    }

    /// The words of several buffers at once.
    pub(super) fn many<const N: usize>(&mut self, views: [View; N]) -> [&mut [S]; N] {
        let ranges = views.map(|view| self.range(view));
        self.words.get_disjoint_mut(ranges).expect("buffers that live at once do not overlap")
    }

    /// The words of one buffer.
    pub(super) fn one(&mut self, view: View) -> &mut [S] {
        let range = self.range(view);
        &mut self.words[range]
    }

    /// One buffer to write and the others to read.
    pub(super) fn split(&mut self, out: View) -> (&mut [S], ReadBuffers<'_, S>) {
        let range = self.range(out);
        let (before, rest) = self.words.split_at_mut(range.start);
        let (out, after) = rest.split_at_mut(range.len());
        (out, ReadBuffers { arena: self.arena, buffers: self.buffers, before, after, gap: range })
    }

    /// All buffers, to read.
    pub(super) fn all(&mut self) -> ReadBuffers<'_, S> {
        let end = self.words.len();
        ReadBuffers {
            arena: self.arena,
            buffers: self.buffers,
            before: self.words,
            after: &[],
            gap: end..end,
        }
    }
}

/// Every buffer but the one that is being written.
#[derive(Debug)]
pub(super) struct ReadBuffers<'a, S> {
    arena: &'a Arena,
    buffers: &'a [Buffer],
    before: &'a [S],
    after: &'a [S],
    gap: Range<usize>,
}

impl<'a, S: Real> ReadBuffers<'a, S> {
    /// The words from `view` on, wherever they are.
    pub(super) fn read(&self, view: View, agent: (&'a [S], &'a [S])) -> &'a [S] {
        match view.place {
            MemorySpace::Parameters => &agent.0[view.offset..],
            MemorySpace::Features => &agent.1[view.offset..],
            MemorySpace::Gradient => panic!("no operation reads the gradient"),
            MemorySpace::Buffer(id) => {
                let Range { start, end } = range_in(self.arena, self.buffers, id, view.offset);
                if end <= self.gap.start {
                    &self.before[start..end]
                } else {
                    assert!(start >= self.gap.end, "{view:?} is read while its memory is written");
                    &self.after[start - self.gap.end..end - self.gap.end]
                }
            }
        }
    }
}
