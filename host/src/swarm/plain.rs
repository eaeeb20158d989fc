//! Plain FAB: Algorithm 1 on arrays, with every link of the schedule perfect.

use super::links::{Block, Links};
use super::measure::{Metrics, Ruler, States};
use super::{Diverged, FrameCounts, Halt, Swarm};
use crate::task::{Score, Task};
use fabswarm_shared::fab::{Steps, descend, mix, track};
use fabswarm_shared::graph::{Schedule, Weights};
use fabswarm_shared::linear::first_exception;
use fabswarm_shared::problem::{Moment, Penalty, Problem, Shape};
use fabswarm_shared::scalar::Scalar;
use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

/// The constants of Algorithm 1.
#[derive(Clone, Debug)]
pub struct Constants<S> {
    /// Step sizes.
    pub steps: Steps<S>,
    /// Penalty on the lower level.
    pub penalty: Penalty<S>,
    /// Where A and B come from.
    pub mixing: Mixing<S>,
}

/// Where the mixing matrices A and B come from.
#[derive(Clone, Debug)]
pub enum Mixing<S> {
    /// From the degrees of each round's graph.
    Degrees(Weights),
    /// Given, row-major, the same in every round; the schedule names their non-zero entries.
    Explicit {
        /// A, row-stochastic.
        a: Vec<S>,
        /// B, column-stochastic.
        b: Vec<S>,
    },
}

/// All agents of a swarm, their states packed one agent after the other.
#[derive(Debug)]
pub struct PlainFab<S, G> {
    task: Task<S>,
    schedule: G,
    constants: Constants<S>,
    shape: Shape,
    round: u32,
    v: Vec<S>,
    t: Vec<S>,
    d: Vec<S>,
    next_v: Vec<S>,
    next_t: Vec<S>,
    links: Links,
    /// `(b_jj, b_ij)` of each agent in this round.
    push: Vec<(S, S)>,
    links_used: u64,
    ruler: Ruler,
}

impl<S: Scalar, G: Schedule + Sync> PlainFab<S, G> {
    /// A swarm at rest at the task's starting point.
    #[must_use]
    pub fn new(task: Task<S>, schedule: G, constants: Constants<S>) -> Self {
        let mut start = vec![S::ZERO; task.shape().words()];
        task.start(&mut start);
        let v = start.repeat(schedule.agents());
        Self::at(task, schedule, constants, v)
    }

    /// A swarm at rest at given decisions.
    ///
    /// # Panics
    /// Where `v` has not as many words as the agents of the schedule need.
    #[must_use]
    pub fn at(task: Task<S>, schedule: G, constants: Constants<S>, v: Vec<S>) -> Self {
        let shape = task.shape();
        let agents = schedule.agents();
        assert_eq!(v.len(), agents * shape.words(), "one packed decision an agent");
        let d = gradients_at(&task, &constants.penalty, &v);
        let mut ruler = Ruler::new(&task);
        ruler.start(&v, &d);
        Self {
            shape,
            round: 0,
            next_v: vec![S::ZERO; v.len()],
            next_t: vec![S::ZERO; v.len()],
            t: d.clone(),
            v,
            d,
            links: Links::new(agents),
            push: vec![(S::ONE, S::ZERO); agents],
            links_used: 0,
            ruler,
            task,
            schedule,
            constants,
        }
    }

    /// Packed decisions `[x | y | z]`, one agent after the other.
    #[must_use]
    pub fn decisions(&self) -> &[S] {
        &self.v
    }

    /// Packed trackers.
    #[must_use]
    pub fn trackers(&self) -> &[S] {
        &self.t
    }

    /// Packed last gradients.
    #[must_use]
    pub fn gradients(&self) -> &[S] {
        &self.d
    }
}

/// The packed gradients of all agents at packed decisions, before the first round.
pub(super) fn gradients_at<S: Scalar>(task: &Task<S>, penalty: &Penalty<S>, v: &[S]) -> Vec<S> {
    let words = task.shape().words();
    let mut d = vec![S::ZERO; v.len()];
    let mut scratch = vec![S::ZERO; task.problem(0).scratch_words()];
    for (agent, (v, d)) in v.chunks_exact(words).zip(d.chunks_exact_mut(words)).enumerate() {
        let at = Moment { agent: agent as u32, round: 0 };
        task.problem(agent).penalty_gradient(penalty, at, v, d, &mut scratch);
    }
    d
}

/// `Σt − Σd`, word by word.
pub(super) fn defect<S: Scalar>(t: &[S], d: &[S], words: usize) -> Vec<f64> {
    let mut defect = vec![0.0; words];
    for (t, d) in t.chunks_exact(words).zip(d.chunks_exact(words)) {
        for ((defect, &t), &d) in defect.iter_mut().zip(t).zip(d) {
            *defect += t.to_f64() - d.to_f64();
        }
    }
    defect
}

/// One block of agents and the part of the state that it writes.
struct Part<'a, S> {
    block: &'a Block,
    next_v: &'a mut [S],
    next_t: &'a mut [S],
    d: &'a mut [S],
}

/// What all blocks read.
struct Round<'a, S> {
    task: &'a Task<S>,
    constants: &'a Constants<S>,
    shape: Shape,
    round: u32,
    v: &'a [S],
    t: &'a [S],
    push: &'a [(S, S)],
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
        self.round.run_agents(self.part)
    }
}

impl<'a, S: Scalar> Round<'a, S> {
    /// `a_ij`, where `uniform` is what all weights of this agent are if they follow from its degree.
    #[inline(always)]
    fn pull(&self, uniform: S, agent: usize, sender: usize) -> S {
        match &self.constants.mixing {
            Mixing::Degrees(_) => uniform,
            Mixing::Explicit { a, .. } => a[agent * self.push.len() + sender],
        }
    }

    /// `b_ij`.
    #[inline(always)]
    fn push(&self, agent: usize, sender: usize) -> S {
        match &self.constants.mixing {
            Mixing::Degrees(_) if agent == sender => self.push[agent].0,
            Mixing::Degrees(_) => self.push[sender].1,
            Mixing::Explicit { b, .. } => b[agent * self.push.len() + sender],
        }
    }

    /// Runs the agents of one block; answers the first that is no longer finite, and its packed word.
    fn run(&self, part: Part<'_, S>) -> Result<(), (usize, usize)> {
        // Compiled for the vector registers of this machine; the bits are the same on every other.
        Arch::new().dispatch(Run { round: self, part })
    }

    #[inline(always)]
    fn run_agents(&self, part: Part<'_, S>) -> Result<(), (usize, usize)> {
        let words = self.shape.words();
        let exchanged = self.shape.exchanged();
        let local = 0..exchanged.start;
        let mut scratch = vec![S::ZERO; self.task.problem(0).scratch_words()];
        let mut newest = vec![S::ZERO; words];
        let rows = part.block.rows().zip(part.next_v.chunks_exact_mut(words));
        let rows = rows.zip(part.next_t.chunks_exact_mut(words)).zip(part.d.chunks_exact_mut(words));
        for ((((agent, senders), next_v), next_t), d) in rows {
            let own = agent * words;
            let v = &self.v[own..own + words];
            let t = &self.t[own..own + words];
            let sent = |state: &'a [S], sender: u32| &state[sender as usize * words..][exchanged.clone()];
            let problem = self.task.problem(agent);

            let uniform = match &self.constants.mixing {
                Mixing::Degrees(weights) => weights.pull(senders.len()),
                Mixing::Explicit { .. } => S::ZERO,
            };
            let pull = |sender| self.pull(uniform, agent, sender);
            let heard = senders.iter().map(|&sender| (pull(sender as usize), sent(self.v, sender)));
            mix(pull(agent), &v[exchanged.clone()], heard, &mut next_v[exchanged.clone()]);
            next_v[local.clone()].copy_from_slice(&v[local.clone()]);
            descend(&self.shape, &self.constants.steps, t, next_v);
            problem.project(&mut next_v[..self.shape.x]);

            let at = Moment { agent: agent as u32, round: self.round + 1 };
            problem.penalty_gradient(&self.constants.penalty, at, next_v, &mut newest, &mut scratch);

            let heard =
                senders.iter().map(|&sender| (self.push(agent, sender as usize), sent(self.t, sender)));
            mix(self.push(agent, agent), &t[exchanged.clone()], heard, &mut next_t[exchanged.clone()]);
            next_t[local.clone()].copy_from_slice(&t[local.clone()]);
            track(&newest, d, next_t);

            if let Some(word) = first_exception(next_v, S::is_finite) {
                return Err((agent, word));
            }
        }
        Ok(())
    }
}

/// Splits a packed state into the parts that blocks write.
pub(super) fn split_by_blocks<'a, S>(
    mut state: &'a mut [S],
    blocks: &[Block],
    words: usize,
) -> Vec<&'a mut [S]> {
    let mut parts = Vec::with_capacity(blocks.len());
    for block in blocks {
        let (part, rest) = state.split_at_mut(block.agents().len() * words);
        parts.push(part);
        state = rest;
    }
    parts
}

impl<S: Scalar, G: Schedule + Sync> Swarm for PlainFab<S, G> {
    fn step(&mut self) -> Result<(), Halt> {
        self.links.lay(&self.schedule, self.round);
        self.links_used += self.links.count() as u64;
        if let Mixing::Degrees(weights) = &self.constants.mixing {
            for (push, &listeners) in self.push.iter_mut().zip(self.links.listeners()) {
                *push = weights.push(listeners as usize);
            }
        }
        let round = Round {
            task: &self.task,
            constants: &self.constants,
            shape: self.shape,
            round: self.round,
            v: &self.v,
            t: &self.t,
            push: &self.push,
        };
        let outcome = match self.links.blocks() {
            [block] => {
                round.run(Part { block, next_v: &mut self.next_v, next_t: &mut self.next_t, d: &mut self.d })
            }
            blocks => {
                let words = self.shape.words();
                let next_v = split_by_blocks(&mut self.next_v, blocks, words);
                let next_t = split_by_blocks(&mut self.next_t, blocks, words);
                let d = split_by_blocks(&mut self.d, blocks, words);
                let parts: Vec<_> = blocks.iter().zip(next_v).zip(next_t).zip(d).collect();
                let outcomes: Vec<_> = parts
                    .into_par_iter()
                    .map(|(((block, next_v), next_t), d)| round.run(Part { block, next_v, next_t, d }))
                    .collect();
                outcomes.into_iter().collect()
            }
        };
        std::mem::swap(&mut self.v, &mut self.next_v);
        std::mem::swap(&mut self.t, &mut self.next_t);
        self.round += 1;
        outcome.map_err(|(agent, word)| {
            Diverged::at_word(u64::from(self.round), agent, &self.shape, word).into()
        })
    }

    fn round(&self) -> u64 {
        u64::from(self.round)
    }

    fn metrics(&self) -> Metrics {
        self.ruler.measure(
            self.round(),
            States { v: &self.v, d: &self.d, defect: &defect(&self.t, &self.d, self.shape.words()) },
        )
    }

    /// Without an air each agent's word is heard on every link of the schedule.
    fn counts(&self) -> FrameCounts {
        FrameCounts { sent: self.links_used, ..FrameCounts::default() }
    }

    fn scores(&self) -> Vec<Score> {
        self.task.scores(&self.v)
    }
}
