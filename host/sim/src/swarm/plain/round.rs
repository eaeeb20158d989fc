//! One round of plain FAB for the agents of one block.

use super::{ArrayFabConfig, MixingRule, exchanged_stride, stride};
use crate::swarm::links::LinkBlock;
use crate::task::Task;
use fabswarm_shared::fab::{Order, descend, descend_with_momentum, gather, track};
use fabswarm_shared::linear::{axpy, copy, first_invalid, scaled};
use fabswarm_shared::problem::{NoiseKey, Shape};
use fabswarm_shared::scalar::Scalar;
use pulp::{Arch, NullaryFnOnce};
use std::ops::Range;

/// The paper's sizes. The loop is compiled a second time for them: with sizes that a compiler knows its kernels have no
/// loops left. Operations and their order, and so the bits, are the same.
const USUAL: Shape = Shape { x: 5, y: 20, x_is_local: false };

/// Pieces that [`gather`] adds at once: a broadcast of [`USUAL`] shape is one block of them.
const PIECES: usize = 6;

/// Buffers for the work on one agent.
#[derive(Clone, Debug)]
pub(super) struct RoundBuffers<S> {
    scratch: Vec<S>,
    newest: Vec<S>,
    /// Of all that was heard, laid out as it was broadcasts.
    sums: Vec<S>,
}

impl<S: Scalar> RoundBuffers<S> {
    pub(super) fn new(shape: &Shape, scratch_words: usize) -> Self {
        Self {
            scratch: vec![S::ZERO; scratch_words],
            newest: vec![S::ZERO; stride(shape)],
            sums: vec![S::ZERO; 2 * exchanged_stride(shape)],
        }
    }
}

/// One block of agents and what its thread writes.
pub(super) struct PlainBlock<'a, S> {
    pub(super) block: &'a LinkBlock,
    pub(super) workspace: &'a mut RoundBuffers<S>,
    pub(super) v: &'a mut [S],
    pub(super) t: &'a mut [S],
    pub(super) d: &'a mut [S],
    /// Empty where there is no momentum.
    pub(super) accumulator: &'a mut [S],
}

/// The input of all blocks.
pub(super) struct PlainRound<'a, S> {
    pub(super) task: &'a Task<S>,
    pub(super) constants: &'a ArrayFabConfig<S>,
    pub(super) shape: Shape,
    pub(super) steps: &'a [S],
    pub(super) round: u32,
    pub(super) broadcasts: &'a [S],
    /// How many hear each agent.
    pub(super) listeners: &'a [u32],
}

/// The work on one block, compiled for the vector registers of this machine.
struct PlainRoundKernel<'r, 'a, 'p, S> {
    round: &'r PlainRound<'a, S>,
    part: PlainBlock<'p, S>,
}

impl<S: Scalar> NullaryFnOnce for PlainRoundKernel<'_, '_, '_, S> {
    type Output = Result<(), (usize, usize)>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        if self.round.shape == USUAL {
            self.round.run_agents(USUAL, self.part)
        } else {
            self.round.run_agents(self.round.shape, self.part)
        }
    }
}

/// Descends a row of words along its tracker; `m` is empty where there is no momentum.
#[inline(always)]
pub(super) fn step<S: Scalar>(momentum: S, steps: &[S], t: &[S], m: &mut [S], v: &mut [S]) {
    if momentum == S::ZERO {
        descend(steps, t, v);
    } else {
        descend_with_momentum(momentum, steps, t, m, v);
    }
}

impl<'a, S: Scalar> PlainRound<'a, S> {
    /// Runs the agents of one block; returns the first that is not finite and its packed word as the error.
    pub(super) fn run(&self, part: PlainBlock<'_, S>) -> Result<(), (usize, usize)> {
        // Compiled for the vector registers of this machine; the bits are the same on every other.
        Arch::new().dispatch(PlainRoundKernel { round: self, part })
    }

    #[inline(always)]
    fn run_agents(&self, shape: Shape, part: PlainBlock<'_, S>) -> Result<(), (usize, usize)> {
        let stride = stride(&shape);
        let PlainBlock { block, workspace, v, t, d, accumulator } = part;
        let rows = v.chunks_exact_mut(stride).zip(t.chunks_exact_mut(stride)).zip(d.chunks_exact_mut(stride));
        let mut accumulators = accumulator.chunks_exact_mut(stride);
        for ((agent, senders), ((v, t), d)) in block.rows().zip(rows) {
            let m = accumulators.next().unwrap_or_default();
            self.listen(shape, agent, senders, [v, t, m], &mut workspace.sums);
            self.learn(shape, agent, v, t, d, workspace)?;
        }
        Ok(())
    }

    /// Pull and push: what an agent heard enters its decision and its tracker.
    #[inline(always)]
    fn listen(
        &self,
        shape: Shape,
        agent: usize,
        senders: impl ExactSizeIterator<Item = usize> + Clone,
        [v, t, m]: [&mut [S]; 3],
        sums: &mut [S],
    ) {
        let (local, half) = (shape.exchanged().start, exchanged_stride(&shape));
        let sums = &mut sums[..2 * half];
        let pull = self.add_up(half, agent, senders, &t[local..], sums);
        let (decisions, masses) = sums.split_at(half);
        scaled(pull, decisions, &mut v[local..]);
        let steps = &self.steps[..stride(&shape)];
        // Agents that adapt first have descended before they sent.
        if self.constants.order == Order::CombineFirst {
            step(self.constants.steps.momentum, steps, t, m, v);
        }
        copy(masses, &mut t[local..]);
    }

    /// The gradient at the new decision, and the tracker after it; the packed word that is no longer finite.
    #[inline(always)]
    fn learn(
        &self,
        shape: Shape,
        agent: usize,
        v: &mut [S],
        t: &mut [S],
        d: &mut [S],
        workspace: &mut RoundBuffers<S>,
    ) -> Result<(), (usize, usize)> {
        let words = shape.words();
        let newest = &mut workspace.newest[..stride(&shape)];
        let at = NoiseKey { agent: agent as u32, round: self.round + 1 };
        let (decision, gradient) = (&mut v[..words], &mut newest[..words]);
        let (penalty, scratch) = (&self.constants.penalty, &mut workspace.scratch);
        self.task.project_and_take_gradient(shape, penalty, at, decision, gradient, scratch);
        track(newest, d, t);
        first_invalid(v, S::is_finite).map_or(Ok(()), |word| Err((agent, word)))
    }

    /// Adds up all that an agent heard, its own decision and what it keeps of its tracker; returns the factor by which the sum of
    /// decisions is still to be multiplied.
    #[inline(always)]
    fn add_up(
        &self,
        half: usize,
        agent: usize,
        senders: impl ExactSizeIterator<Item = usize> + Clone,
        t: &[S],
        sums: &mut [S],
    ) -> S {
        let broadcasts = |agent: usize| &self.broadcasts[agent * 2 * half..][..2 * half];
        match &self.constants.mixing {
            MixingRule::Degrees(weights) => {
                let (decisions, masses) = sums.split_at_mut(half);
                copy(broadcasts(agent), decisions);
                scaled(weights.push(self.listeners[agent] as usize).0, t, masses);
                let heard = senders.len();
                gather::<PIECES, S>(sums, senders.map(broadcasts));
                weights.pull(heard)
            }
            MixingRule::Explicit { a, b } => {
                let row = agent * self.listeners.len();
                let mut add = |half_said: Range<usize>, matrix: &[S]| {
                    let sums = &mut sums[half_said.clone()];
                    scaled(matrix[row + agent], &broadcasts(agent)[half_said.clone()], sums);
                    for sender in senders.clone() {
                        axpy(matrix[row + sender], &broadcasts(sender)[half_said.clone()], sums);
                    }
                };
                add(0..half, a);
                add(half..2 * half, b);
                S::ONE
            }
        }
    }
}
