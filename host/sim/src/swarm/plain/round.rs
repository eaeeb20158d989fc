//! One round of plain FAB for the agents of one block: first all blocks send, then all listen.

use super::{ArrayFabConfig, MixingRule, exchanged_stride, stride};
use crate::swarm::links::LinkBlock;
use crate::task::Task;
use fabswarm_shared::fab::{Order, descend, descend_with_momentum, gather, track};
use fabswarm_shared::linear::{axpy, copy, first_invalid, scaled};
use fabswarm_shared::problem::{NoiseKey, Shape};
use fabswarm_shared::scalar::Scalar;
use pulp::NullaryFnOnce;
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
    /// The sums of all that was heard, laid out as it was broadcast.
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

/// The input of all blocks.
pub(super) struct PlainRound<'a, S> {
    pub(super) task: &'a Task<S>,
    pub(super) constants: &'a ArrayFabConfig<S>,
    pub(super) shape: Shape,
    /// Each word's step size, as a row.
    pub(super) steps: &'a [S],
    pub(super) round: u32,
    /// How many hear each agent.
    pub(super) listeners: &'a [u32],
    /// The broadcasts of all agents, once they have sent them.
    pub(super) broadcasts: &'a [S],
}

/// One block of agents that send, and what its thread writes.
pub(super) struct SendingBlock<'a, S> {
    pub(super) round: &'a PlainRound<'a, S>,
    pub(super) block: &'a LinkBlock,
    pub(super) v: &'a mut [S],
    pub(super) t: &'a [S],
    /// Empty where there is no momentum.
    pub(super) m: &'a mut [S],
    pub(super) broadcasts: &'a mut [S],
}

impl<S: Scalar> NullaryFnOnce for SendingBlock<'_, S> {
    type Output = ();

    /// The decision of each agent of a block, and the share of its tracker that all who hear it get. Where they get different
    /// ones that is the whole tracker. Agents that adapt first descend here.
    #[inline(always)]
    fn call(self) {
        let Self { round: PlainRound { constants, shape, listeners, .. }, .. } = self;
        let (stride, half) = (stride(shape), exchanged_stride(shape));
        let local = shape.exchanged().start;
        let rows = self.v.chunks_exact_mut(stride).zip(self.t.chunks_exact(stride));
        let rows = rows.zip(self.broadcasts.chunks_exact_mut(2 * half));
        let mut accumulators = self.m.chunks_exact_mut(stride);
        for (agent, ((v, t), broadcasts)) in self.block.agents().zip(rows) {
            let m = accumulators.next().unwrap_or_default();
            if constants.order == Order::AdaptFirst {
                self.round.step(shape, t, m, v);
            }
            let share = match &constants.mixing {
                MixingRule::Degrees(weights) => weights.push(listeners[agent] as usize).1,
                MixingRule::Explicit { .. } => S::ONE,
            };
            let (decision, mass) = broadcasts.split_at_mut(half);
            // With the zeros at its end a row is whole vector registers, which cost less than what is left of them.
            copy(&v[local..], decision);
            scaled(share, &t[local..], mass);
        }
    }
}

/// One block of agents that listen, and what its thread writes.
pub(super) struct PlainBlock<'a, S> {
    pub(super) round: &'a PlainRound<'a, S>,
    pub(super) block: &'a LinkBlock,
    pub(super) buffers: &'a mut RoundBuffers<S>,
    pub(super) v: &'a mut [S],
    pub(super) t: &'a mut [S],
    pub(super) d: &'a mut [S],
    /// Empty where there is no momentum.
    pub(super) m: &'a mut [S],
}

impl<S: Scalar> NullaryFnOnce for PlainBlock<'_, S> {
    /// As the error the first agent that is not finite, and its packed word.
    type Output = Result<(), (usize, usize)>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        if self.round.shape == USUAL {
            self.run_agents(USUAL)
        } else {
            let shape = self.round.shape;
            self.run_agents(shape)
        }
    }
}

impl<S: Scalar> PlainBlock<'_, S> {
    #[inline(always)]
    fn run_agents(self, shape: Shape) -> Result<(), (usize, usize)> {
        let stride = stride(&shape);
        let Self { round, block, buffers, v, t, d, m } = self;
        let rows = v.chunks_exact_mut(stride).zip(t.chunks_exact_mut(stride)).zip(d.chunks_exact_mut(stride));
        let mut accumulators = m.chunks_exact_mut(stride);
        for ((agent, senders), ((v, t), d)) in block.rows().zip(rows) {
            let m = accumulators.next().unwrap_or_default();
            round.listen(shape, agent, senders, [v, t, m], &mut buffers.sums);
            round.learn(shape, agent, v, t, d, buffers)?;
        }
        Ok(())
    }
}

impl<S: Scalar> PlainRound<'_, S> {
    /// Descends a row of words along its tracker; `m` is empty where there is no momentum.
    #[inline(always)]
    fn step(&self, shape: &Shape, t: &[S], m: &mut [S], v: &mut [S]) {
        let (momentum, steps) = (self.constants.steps.momentum, &self.steps[..stride(shape)]);
        if momentum == S::ZERO {
            descend(steps, t, v);
        } else {
            descend_with_momentum(momentum, steps, t, m, v);
        }
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
        // Agents that adapt first have descended before they sent.
        if self.constants.order == Order::CombineFirst {
            self.step(&shape, t, m, v);
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
        buffers: &mut RoundBuffers<S>,
    ) -> Result<(), (usize, usize)> {
        let words = shape.words();
        let newest = &mut buffers.newest[..stride(&shape)];
        let at = NoiseKey { agent: agent as u32, round: self.round + 1 };
        let (decision, gradient) = (&mut v[..words], &mut newest[..words]);
        let (penalty, scratch) = (&self.constants.penalty, &mut buffers.scratch);
        self.task.project_and_take_gradient(shape, penalty, at, decision, gradient, scratch);
        track(newest, d, t);
        first_invalid(v, S::is_finite).map_or(Ok(()), |word| Err((agent, word)))
    }

    /// Adds up what an agent heard, its decision and what it keeps of its tracker; returns the missing factor of the decisions.
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
