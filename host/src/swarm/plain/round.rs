//! One round of plain FAB for the agents of one block.

use super::{Constants, Mixing, stride};
use crate::swarm::links::Block;
use crate::task::Task;
use fabswarm_shared::fab::{descend, mix, track};
use fabswarm_shared::linear::first_exception;
use fabswarm_shared::problem::{Moment, Shape};
use fabswarm_shared::scalar::Scalar;
use pulp::{Arch, NullaryFnOnce};

/// The paper's sizes. The loop is compiled a second time for them: with sizes that a compiler knows its kernels have no
/// loops left. Operations and their order, and so the bits, are the same.
const USUAL: Shape = Shape { x: 5, y: 20, x_is_local: false };

/// Pieces of a row that [`mix`] carries at once: a row of [`USUAL`] is one block of them.
const PIECES: usize = 3;

/// What the loop needs while it works on an agent.
#[derive(Clone, Debug)]
pub(super) struct Workspace<S> {
    scratch: Vec<S>,
    newest: Vec<S>,
    weights: Vec<S>,
}

impl<S: Scalar> Workspace<S> {
    pub(super) fn new(stride: usize, scratch_words: usize) -> Self {
        let (scratch, newest) = (vec![S::ZERO; scratch_words], vec![S::ZERO; stride]);
        Self { scratch, newest, weights: Vec::new() }
    }
}

/// One block of agents and what its thread writes.
pub(super) struct Part<'a, S> {
    pub(super) block: &'a Block,
    pub(super) workspace: &'a mut Workspace<S>,
    pub(super) next_v: &'a mut [S],
    pub(super) next_t: &'a mut [S],
    pub(super) d: &'a mut [S],
}

/// What all blocks read.
pub(super) struct Round<'a, S> {
    pub(super) task: &'a Task<S>,
    pub(super) constants: &'a Constants<S>,
    pub(super) shape: Shape,
    pub(super) steps: &'a [S],
    pub(super) round: u32,
    pub(super) v: &'a [S],
    pub(super) t: &'a [S],
    /// `(b_jj, b_ij)` of each agent.
    pub(super) push: &'a [(S, S)],
}

/// One block's work, as something that is compiled for the registers of this machine.
struct Run<'r, 'a, 'p, S> {
    round: &'r Round<'a, S>,
    part: Part<'p, S>,
}

impl<S: Scalar> NullaryFnOnce for Run<'_, '_, '_, S> {
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

impl<'a, S: Scalar> Round<'a, S> {
    /// Runs the agents of one block; answers the first that is no longer finite, and its packed word.
    pub(super) fn run(&self, part: Part<'_, S>) -> Result<(), (usize, usize)> {
        // Compiled for the vector registers of this machine; the bits are the same on every other.
        Arch::new().dispatch(Run { round: self, part })
    }

    #[inline(always)]
    fn run_agents(&self, shape: Shape, part: Part<'_, S>) -> Result<(), (usize, usize)> {
        let (words, stride) = (shape.words(), stride(&shape));
        let local = shape.exchanged().start;
        let Workspace { scratch, newest, weights } = part.workspace;
        let rows = part.block.rows().zip(part.next_v.chunks_exact_mut(stride));
        let rows = rows.zip(part.next_t.chunks_exact_mut(stride)).zip(part.d.chunks_exact_mut(stride));
        for ((((agent, senders), next_v), next_t), d) in rows {
            let v = &self.v[agent * stride..][..stride];
            let t = &self.t[agent * stride..][..stride];
            let sent = |state: &'a [S], sender: u32| &state[sender as usize * stride..][local..stride];

            let own = self.pull(agent, senders, weights);
            let heard =
                senders.iter().zip(&*weights).map(|(&sender, &weight)| (weight, sent(self.v, sender)));
            mix::<PIECES, S>(own, &v[local..], heard, &mut next_v[local..]);
            let own = self.push(agent, senders, weights);
            let heard =
                senders.iter().zip(&*weights).map(|(&sender, &weight)| (weight, sent(self.t, sender)));
            mix::<PIECES, S>(own, &t[local..], heard, &mut next_t[local..]);
            next_v[..local].copy_from_slice(&v[..local]);
            next_t[..local].copy_from_slice(&t[..local]);

            descend(&self.steps[..stride], t, next_v);
            let at = Moment { agent: agent as u32, round: self.round + 1 };
            let (decision, newest_d) = (&mut next_v[..words], &mut newest[..words]);
            let penalty = &self.constants.penalty;
            self.task.project_and_take_gradient(shape, penalty, at, decision, newest_d, scratch);
            track(&newest[..stride], d, next_t);

            if let Some(word) = first_exception(next_v, S::is_finite) {
                return Err((agent, word));
            }
        }
        Ok(())
    }

    /// `a_ij` of each sender into `weights`; answers `a_ii`.
    #[inline(always)]
    fn pull(&self, agent: usize, senders: &[u32], weights: &mut Vec<S>) -> S {
        weights.clear();
        match &self.constants.mixing {
            Mixing::Degrees(degrees) => {
                let uniform = degrees.pull(senders.len());
                weights.resize(senders.len(), uniform);
                uniform
            }
            Mixing::Explicit { a, .. } => self.explicit(a, agent, senders, weights),
        }
    }

    /// `b_ij` of each sender into `weights`; answers `b_ii`.
    #[inline(always)]
    fn push(&self, agent: usize, senders: &[u32], weights: &mut Vec<S>) -> S {
        weights.clear();
        match &self.constants.mixing {
            Mixing::Degrees(_) => {
                weights.extend(senders.iter().map(|&sender| self.push[sender as usize].1));
                self.push[agent].0
            }
            Mixing::Explicit { b, .. } => self.explicit(b, agent, senders, weights),
        }
    }

    fn explicit(&self, matrix: &[S], agent: usize, senders: &[u32], weights: &mut Vec<S>) -> S {
        let row = &matrix[agent * self.push.len()..];
        weights.extend(senders.iter().map(|&sender| row[sender as usize]));
        row[agent]
    }
}
