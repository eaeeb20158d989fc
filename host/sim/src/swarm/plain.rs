//! Plain FAB: Algorithm 1 on arrays, with every link of the schedule perfect.

mod round;

use super::links::LinkTable;
use super::measure::{Meter, Metrics, States};
use super::{Answer, DivergenceError, Swarm, SwarmError, SwarmView, ViewRequest};
use crate::air::FrameCounts;
use crate::cores;
use crate::task::{Score, Task};
use aligned_vec::{AVec, ConstAlign};
use fabswarm_shared::agent::Fault;
use fabswarm_shared::fab::{Order, PIECE, Steps};
use fabswarm_shared::graph::{Schedule, Weights};
use fabswarm_shared::problem::{NoiseKey, Penalty, Problem, Shape};
use fabswarm_shared::scalar::Scalar;
use pulp::Arch;
use round::{PlainBlock, PlainRound, RoundBuffers, SendingBlock};

/// The constants of Algorithm 1.
#[derive(Clone, Debug)]
pub struct ArrayFabConfig<S> {
    /// Step sizes.
    pub steps: Steps<S>,
    /// Whether agents descend before or after they average.
    pub order: Order,
    /// Penalty on the lower level.
    pub penalty: Penalty<S>,
    /// Where A and B come from.
    pub mixing: MixingRule<S>,
}

/// Where the mixing matrices A and B come from.
#[derive(Clone, Debug)]
pub enum MixingRule<S> {
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

/// All agents of a swarm, with one row of state per agent.
#[derive(Debug)]
pub struct ArrayFab<S, G> {
    task: Task<S>,
    schedule: G,
    constants: ArrayFabConfig<S>,
    shape: Shape,
    /// Each word's step size, as a row.
    steps: Vec<S>,
    round: u32,
    v: AgentRows<S>,
    t: AgentRows<S>,
    d: AgentRows<S>,
    /// m of momentum; without rows where β is 0.
    accumulator: AgentRows<S>,
    /// The broadcast of each agent in a round: its decision and the share of its tracker.
    broadcasts: AgentRows<S>,
    /// The links of the next round.
    links: LinkTable,
    /// One for each block of links.
    buffers: Vec<RoundBuffers<S>>,
    meter: Meter,
}

impl<S: Scalar, G: Schedule + Sync> ArrayFab<S, G> {
    /// A swarm at rest at the task's starting point.
    pub fn new(task: Task<S>, schedule: G, constants: ArrayFabConfig<S>) -> Self {
        let v = task.start().repeat(schedule.agents());
        Self::at(task, schedule, constants, v)
    }

    /// A swarm at rest at given decisions.
    ///
    /// # Panics
    /// Where `v` has not as many words as the agents of the schedule need.
    pub fn at(task: Task<S>, schedule: G, constants: ArrayFabConfig<S>, v: Vec<S>) -> Self {
        let shape = task.shape();
        let agents = schedule.agents();
        assert_eq!(v.len(), agents * shape.words(), "one packed decision an agent");
        let d = gradients_at(&task, &constants.penalty, &v);
        let mut meter = Meter::new(&task, constants.steps.x);
        meter.start(&v, &d);
        let (v, d) = (rows(&shape, &v), rows(&shape, &d));
        let mut steps = vec![S::ZERO; stride(&shape)];
        constants.steps.pack(&shape, &mut steps);
        let mut links = LinkTable::new(agents);
        links.lay(&schedule, 0);
        let scratch_words = task.problem(0).scratch_words();
        Self {
            shape,
            steps,
            round: 0,
            t: d.clone(),
            accumulator: zeros(if constants.steps.momentum == S::ZERO { 0 } else { d.len() }),
            broadcasts: zeros(agents * 2 * exchanged_stride(&shape)),
            v,
            d,
            buffers: vec![RoundBuffers::new(&shape, scratch_words); links.blocks.len()],
            links,
            meter,
            task,
            schedule,
            constants,
        }
    }

    /// Packed decisions `[x | y | z]`, one agent after the other.
    pub fn decisions(&self) -> Vec<S> {
        packed(&self.shape, &self.v)
    }

    /// Packed trackers.
    pub fn trackers(&self) -> Vec<S> {
        packed(&self.shape, &self.t)
    }
}

/// One row per agent. Rows are aligned to cache lines: a vector load that straddles two of them takes twice as long.
type AgentRows<S> = AVec<S, ConstAlign<64>>;

/// Words of an agent's row: its packed state, and zeros up to whole vector registers.
const fn stride(shape: &Shape) -> usize {
    shape.words().next_multiple_of(PIECE)
}

/// Words of each half of a broadcast, padded likewise.
const fn exchanged_stride(shape: &Shape) -> usize {
    (shape.words() - shape.exchanged().start).next_multiple_of(PIECE)
}

fn zeros<S: Scalar>(words: usize) -> AgentRows<S> {
    AgentRows::from_iter(0, std::iter::repeat_n(S::ZERO, words))
}

/// Packed states as rows.
fn rows<S: Scalar>(shape: &Shape, packed: &[S]) -> AgentRows<S> {
    let agents = packed.len() / shape.words();
    let mut rows = zeros(agents * stride(shape));
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
        let at = NoiseKey { agent: agent as u32, round: 0 };
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

impl<S: Scalar, G: Schedule + Sync> Swarm for ArrayFab<S, G> {
    fn step(&mut self) -> Result<(), SwarmError> {
        let LinkTable { blocks, block_agents, agents, listeners } = &mut self.links;
        let (rows, broadcasts) =
            (*block_agents * stride(&self.shape), *block_agents * 2 * exchanged_stride(&self.shape));
        let round = PlainRound {
            task: &self.task,
            constants: &self.constants,
            shape: self.shape,
            steps: &self.steps,
            round: self.round,
            listeners: &listeners[..*agents],
            broadcasts: &[],
        };
        let parts = blocks.iter().zip(self.v.chunks_mut(rows)).zip(self.t.chunks(rows));
        let parts = parts.zip(self.broadcasts.chunks_mut(broadcasts));
        let mut accumulators = self.accumulator.chunks_mut(rows);
        let parts = parts.map(|(((block, v), t), broadcasts)| {
            let m = accumulators.next().unwrap_or_default();
            SendingBlock { round: &round, block, v, t, m, broadcasts }
        });
        // Compiled for the vector registers of this machine, here and below; the bits are the same on every other.
        let () = cores::map(parts, |part| Arch::new().dispatch(part));

        let round = PlainRound { broadcasts: &self.broadcasts, ..round };
        let parts = blocks.iter_mut().zip(&mut self.buffers).zip(self.v.chunks_mut(rows));
        let parts = parts.zip(self.t.chunks_mut(rows)).zip(self.d.chunks_mut(rows));
        let mut accumulators = self.accumulator.chunks_mut(rows);
        let parts = parts.map(|part| (part, accumulators.next().unwrap_or_default()));
        let outcome: Result<(), (usize, usize)> =
            cores::map(parts, |(((((block, buffers), v), t), d), m)| {
                let part = PlainBlock { round: &round, block, buffers, v, t, d, m };
                let outcome = Arch::new().dispatch(part);
                // The links of the next round depend on nothing: drawn here, they cost no thread another wait for the others.
                block.lay(&self.schedule, self.round + 1);
                outcome
            });
        self.links.count_listeners();
        self.round += 1;
        outcome.map_err(|(agent, word)| {
            DivergenceError::from_fault(u64::from(self.round), agent, &self.shape, Fault::in_decision(word))
                .into()
        })
    }

    fn round(&self) -> u64 {
        u64::from(self.round)
    }

    fn metrics(&self) -> Metrics {
        let (v, t, d) = (self.decisions(), self.trackers(), packed(&self.shape, &self.d));
        let defect = defect(&t, &d, self.shape.words());
        self.meter.measure(self.round(), States { task: &self.task, v: &v, d: &d, defect: &defect })
    }

    /// Without an air each agent counts as sending one frame per round.
    fn counts(&self) -> FrameCounts {
        FrameCounts { sent: self.round() * self.schedule.agents() as u64, ..FrameCounts::default() }
    }

    fn answer(&self) -> Answer {
        Answer::new(self.shape, &self.decisions())
    }

    fn scores(&self) -> Vec<Score> {
        self.task.scores(&self.decisions())
    }

    fn view(&self, request: &ViewRequest) -> SwarmView {
        let mut view = SwarmView::of_table(&self.links, self.round(), request);
        view.add_deviations(&self.decisions(), self.shape.words(), self.shape.exchanged());
        view
    }
}
