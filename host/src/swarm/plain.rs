//! Plain FAB: Algorithm 1 on arrays, with every link of the schedule perfect.

mod round;

use super::links::{Block, Links};
use super::measure::{Metrics, Ruler, States};
use super::{Diverged, FrameCounts, Halt, Swarm};
use crate::task::{Score, Task};
use aligned_vec::{AVec, ConstAlign};
use fabswarm_shared::fab::{PIECE, Steps};
use fabswarm_shared::graph::{Schedule, Weights};
use fabswarm_shared::problem::{Moment, Penalty, Problem, Shape};
use fabswarm_shared::scalar::Scalar;
use rayon::prelude::*;
use round::{Part, Round, Workspace};

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

/// All agents of a swarm, their states one row an agent.
#[derive(Debug)]
pub struct PlainFab<S, G> {
    task: Task<S>,
    schedule: G,
    constants: Constants<S>,
    shape: Shape,
    /// Each word's step size, as a row.
    steps: Vec<S>,
    round: u32,
    v: Rows<S>,
    t: Rows<S>,
    d: Rows<S>,
    next_v: Rows<S>,
    next_t: Rows<S>,
    links: Links,
    /// One for each block of links.
    workspaces: Vec<Workspace<S>>,
    /// `(b_jj, b_ij)` of each agent in this round.
    push: Vec<(S, S)>,
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
        let (v, d) = (rows(&shape, &v), rows(&shape, &d));
        let mut steps = vec![S::ZERO; stride(&shape)];
        constants.steps.pack(&shape, &mut steps);
        let links = Links::new(agents);
        let scratch_words = task.problem(0).scratch_words();
        Self {
            shape,
            steps,
            round: 0,
            next_v: v.clone(),
            next_t: v.clone(),
            t: d.clone(),
            v,
            d,
            workspaces: vec![Workspace::new(stride(&shape), scratch_words); links.blocks().len()],
            links,
            push: vec![(S::ONE, S::ZERO); agents],
            ruler,
            task,
            schedule,
            constants,
        }
    }

    /// Packed decisions `[x | y | z]`, one agent after the other.
    #[must_use]
    pub fn decisions(&self) -> Vec<S> {
        packed(&self.shape, &self.v)
    }

    /// Packed trackers.
    #[must_use]
    pub fn trackers(&self) -> Vec<S> {
        packed(&self.shape, &self.t)
    }
}

/// One row an agent. Rows start at cache lines: a vector register that crosses two of them is filled half as fast.
type Rows<S> = AVec<S, ConstAlign<64>>;

/// Words of an agent's row: its packed state, and zeros up to whole vector registers.
const fn stride(shape: &Shape) -> usize {
    shape.words().next_multiple_of(PIECE)
}

/// Packed states as rows.
fn rows<S: Scalar>(shape: &Shape, packed: &[S]) -> Rows<S> {
    let agents = packed.len() / shape.words();
    let mut rows = Rows::from_iter(0, std::iter::repeat_n(S::ZERO, agents * stride(shape)));
    for (row, packed) in rows.chunks_exact_mut(stride(shape)).zip(packed.chunks_exact(shape.words())) {
        row[..packed.len()].copy_from_slice(packed);
    }
    rows
}

/// Rows as packed states.
fn packed<S: Scalar>(shape: &Shape, rows: &[S]) -> Vec<S> {
    rows.chunks_exact(stride(shape)).flat_map(|row| &row[..shape.words()]).copied().collect()
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
        if let Mixing::Degrees(weights) = &self.constants.mixing {
            for (push, &listeners) in self.push.iter_mut().zip(self.links.listeners()) {
                *push = weights.push(listeners as usize);
            }
        }
        let round = Round {
            task: &self.task,
            constants: &self.constants,
            shape: self.shape,
            steps: &self.steps,
            round: self.round,
            v: &self.v,
            t: &self.t,
            push: &self.push,
        };
        let words = stride(&self.shape);
        let blocks = self.links.blocks();
        let outcome = if let ([block], [workspace]) = (blocks, self.workspaces.as_mut_slice()) {
            let (next_v, next_t, d) = (&mut *self.next_v, &mut *self.next_t, &mut *self.d);
            round.run(Part { block, workspace, next_v, next_t, d })
        } else {
            let next_v = split_by_blocks(&mut self.next_v, blocks, words);
            let next_t = split_by_blocks(&mut self.next_t, blocks, words);
            let d = split_by_blocks(&mut self.d, blocks, words);
            let states = next_v.into_par_iter().zip(next_t).zip(d);
            let outcomes: Vec<_> = blocks
                .par_iter()
                .zip(&mut self.workspaces)
                .zip(states)
                .map(|((block, workspace), ((next_v, next_t), d))| {
                    round.run(Part { block, workspace, next_v, next_t, d })
                })
                .collect();
            outcomes.into_iter().collect()
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
        let (v, t, d) = (self.decisions(), self.trackers(), packed(&self.shape, &self.d));
        let defect = defect(&t, &d, self.shape.words());
        self.ruler.measure(self.round(), States { v: &v, d: &d, defect: &defect })
    }

    /// Without an air each agent says one word a round, heard on every link of the schedule.
    fn counts(&self) -> FrameCounts {
        FrameCounts { sent: self.round() * self.schedule.agents() as u64, ..FrameCounts::default() }
    }

    fn scores(&self) -> Vec<Score> {
        self.task.scores(&self.decisions())
    }
}
