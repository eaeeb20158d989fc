//! The broadcast ledger on arrays: the same bits as agents over an air without faults, but without frames.
//!
//! It runs swarms that are too large to simulate agent by agent, and it is the reference for agents over the air.

use super::links::{LinkBlock, LinkTable};
use super::measure::{Meter, Metrics, States};
use super::plain::gradients_at;
use super::{Answer, DivergenceError, Swarm, SwarmError, SwarmView, ViewRequest};
use crate::air::FrameCounts;
use crate::cores;
use crate::task::{Score, Task};
use fabswarm_shared::agent::{Config, Fault};
use fabswarm_shared::fab::{Order, Phases, gather, pull_weight};
use fabswarm_shared::graph::Schedule;
use fabswarm_shared::ledger::{self, ShareWeights};
use fabswarm_shared::linear::first_invalid;
use fabswarm_shared::problem::{NoiseKey, Problem, Shape};
use pulp::{Arch, NullaryFnOnce};

/// The direction `m` in which an agent at `(v, gradient, trackers)` descends in `round`, and what it then sends.
#[inline(always)]
fn fill_frame(
    constants: &Config,
    shape: &Shape,
    round: u32,
    (v, gradient, t): (&[f32], &[f32], &[i32]),
    m: &mut [f32],
    sent: &mut [f32],
) {
    if constants.phases.descends(round) {
        ledger::accumulate(shape, constants.steps.momentum, gradient, t, m);
    } else {
        m.fill(0.0);
    }
    sent.copy_from_slice(v);
    if constants.order == Order::AdaptFirst {
        ledger::descend(shape, &constants.steps, m, sent);
    }
}

/// ρ: what one agent has taken from each sender it ever heard, in ascending order of senders.
type TakenSums = Vec<(u32, Box<[i32]>)>;

/// All agents of a swarm, their states packed one agent after the other.
#[derive(Debug)]
pub struct ArrayLedger<G> {
    task: Task<f32>,
    schedule: G,
    constants: Config,
    share_weights: ShareWeights,
    shape: Shape,
    round: u32,
    links: LinkTable,
    meter: Meter,
    v: Vec<f32>,
    gradient: Vec<f32>,
    /// m, packed like `v`: the direction of this round's descent.
    accumulator: Vec<f32>,
    /// The words that agents send in the place of their decisions, in this round and in the next.
    sent: Vec<f32>,
    next_sent: Vec<f32>,
    /// Exchanged words only, here and below.
    t: Vec<i32>,
    d: Vec<i32>,
    sigma: Vec<i32>,
    carry: Vec<i64>,
    taken: Vec<TakenSums>,
}

/// The input of all blocks.
struct ExactRound<'a> {
    task: &'a Task<f32>,
    constants: &'a Config,
    shape: Shape,
    round: u32,
    sent: &'a [f32],
    sigma: &'a [i32],
}

/// One block of agents and what it writes.
struct ExactBlock<'a> {
    round: &'a ExactRound<'a>,
    block: &'a LinkBlock,
    v: &'a mut [f32],
    gradient: &'a mut [f32],
    accumulator: &'a mut [f32],
    next_sent: &'a mut [f32],
    t: &'a mut [i32],
    d: &'a mut [i32],
    taken: &'a mut [TakenSums],
}

impl NullaryFnOnce for ExactBlock<'_> {
    /// As the error the first agent that stopped, and why.
    type Output = Result<(), (usize, Fault)>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        let ExactRound { task, constants, shape, round, sent, sigma } = self.round;
        let words = shape.words();
        let exchanged = shape.exchanged();
        let (local, shared) = (exchanged.start, exchanged.len());
        let mut scratch = vec![0.0; task.problem(0).scratch_words()];
        let rows = self.block.rows().zip(self.v.chunks_exact_mut(words));
        let rows = rows.zip(self.gradient.chunks_exact_mut(words)).zip(self.taken);
        let rows = rows.zip(self.accumulator.chunks_exact_mut(words));
        let rows = rows.zip(self.next_sent.chunks_exact_mut(words));
        let rows = rows.zip(self.t.chunks_exact_mut(shared)).zip(self.d.chunks_exact_mut(shared));
        for ((((((((agent, senders), v), gradient), taken), m), next_sent), t), d) in rows {
            let weight: f32 = pull_weight(senders.len());
            for sender in senders.clone() {
                let known = taken.binary_search_by_key(&(sender as u32), |(sender, _)| *sender);
                let at = known.unwrap_or_else(|at| {
                    taken.insert(at, (sender as u32, vec![0; shared].into()));
                    at
                });
                ledger::take(&sigma[sender * shared..][..shared], &mut taken[at].1, t);
            }
            // The exchanged words are averaged below; the others have been stepped where agents adapt first.
            v.copy_from_slice(&sent[agent * words..][..words]);
            if constants.phases.pulls(*round) {
                let heard = senders.map(|sender| &sent[sender * words..][exchanged.clone()]);
                let next = &mut v[local..];
                gather::<3, _>(next, heard);
                next.iter_mut().for_each(|word| *word *= weight);
            }
            if constants.order == Order::CombineFirst {
                ledger::descend(shape, &constants.steps, m, v);
            }
            let problem = task.problem(agent);
            problem.project(&mut v[..shape.x]);
            if let Some(word) = first_invalid(v, f32::is_finite) {
                return Err((agent, Fault::in_decision(word)));
            }
            let at = NoiseKey { agent: agent as u32, round: round + 1 };
            problem.penalty_gradient(&constants.penalty, at, v, gradient, &mut scratch);
            ledger::track(&gradient[local..], d, t)
                .map_err(|word| (agent, Fault::in_gradient(gradient, local + word)))?;
            fill_frame(constants, shape, round + 1, (v, gradient, t), m, next_sent);
            if let Some(word) = first_invalid(next_sent, f32::is_finite) {
                return Err((agent, Fault::in_decision(word)));
            }
        }
        Ok(())
    }
}

impl<G: Schedule + Sync> ArrayLedger<G> {
    /// A swarm at rest at the task's starting point, of agents with these `constants`. Up to `audience` others may collect from each.
    ///
    /// # Errors
    /// If a gradient at the start is not finite or outside the ledger's range.
    pub fn new(
        task: Task<f32>,
        schedule: G,
        constants: Config,
        audience: u32,
    ) -> Result<Self, DivergenceError> {
        let shape = task.shape();
        let agents = schedule.agents();
        let (words, shared) = (shape.words(), shape.exchanged().len());
        let v = task.start().repeat(agents);
        let mut swarm = Self {
            share_weights: ShareWeights::new(constants.self_weight, audience),
            shape,
            round: 0,
            links: LinkTable::new(agents),
            meter: Meter::new(&task, constants.steps.x),
            gradient: gradients_at(&task, &constants.penalty, &v),
            v,
            accumulator: vec![0.0; agents * words],
            sent: vec![0.0; agents * words],
            next_sent: vec![0.0; agents * words],
            t: vec![0; agents * shared],
            d: vec![0; agents * shared],
            sigma: vec![0; agents * shared],
            carry: vec![0; agents * shared],
            taken: vec![Vec::new(); agents],
            task,
            schedule,
            constants,
        };
        let local = shape.exchanged().start;
        for agent in 0..agents {
            let packed = agent * words..(agent + 1) * words;
            let range = agent * shared..(agent + 1) * shared;
            let (v, gradient) = (&swarm.v[packed.clone()], &swarm.gradient[packed.clone()]);
            let t = &mut swarm.t[range.clone()];
            ledger::track(&gradient[local..], &mut swarm.d[range], t).map_err(|word| {
                let fault = Fault::in_gradient(gradient, local + word);
                DivergenceError::from_fault(0, agent, &shape, fault)
            })?;
            let (m, sent) = (&mut swarm.accumulator[packed.clone()], &mut swarm.sent[packed]);
            fill_frame(&constants, &shape, 0, (v, gradient, t), m, sent);
        }
        swarm.meter.start(&swarm.v, &swarm.gradient);
        swarm.begin_round();
        Ok(swarm)
    }

    /// Packed decisions `[x | y | z]`, one agent after the other.
    pub fn decisions(&self) -> &[f32] {
        &self.v
    }

    /// Trackers of the exchanged words, one agent after the other.
    pub fn trackers(&self) -> &[i32] {
        &self.t
    }

    fn begin_round(&mut self) {
        if self.constants.phases.pushes(self.round) {
            ledger::give(&self.share_weights, 0, &mut self.t, &mut self.carry, &mut self.sigma);
        }
    }

    /// `Σt + Σ(σ − ρ) − Σd`, word by word, as integers.
    fn defect(&self) -> Vec<f64> {
        let shared = self.shape.exchanged().len();
        let mut defect = vec![0; shared];
        let mut add = |state: &[i32], factor: i32| {
            state.chunks_exact(shared).for_each(|state| ledger::add(&mut defect, state, factor));
        };
        add(&self.t, 1);
        add(&self.d, -1);
        add(&self.sigma, self.share_weights.audience() as i32);
        self.taken.iter().flatten().for_each(|(_, rho)| add(rho, -1));
        defect.into_iter().map(|word| f64::from(ledger::value(word))).collect()
    }
}

impl<G: Schedule + Sync> Swarm for ArrayLedger<G> {
    fn step(&mut self) -> Result<(), SwarmError> {
        self.links.lay(&self.schedule, self.round);
        let round = ExactRound {
            task: &self.task,
            constants: &self.constants,
            shape: self.shape,
            round: self.round,
            sent: &self.sent,
            sigma: &self.sigma,
        };
        let LinkTable { blocks, block_agents, .. } = &self.links;
        let words = block_agents * self.shape.words();
        let shared = block_agents * self.shape.exchanged().len();
        let parts = blocks.iter().zip(self.v.chunks_mut(words)).zip(self.gradient.chunks_mut(words));
        let parts = parts.zip(self.accumulator.chunks_mut(words)).zip(self.next_sent.chunks_mut(words));
        let parts = parts.zip(self.t.chunks_mut(shared)).zip(self.d.chunks_mut(shared));
        let parts = parts.zip(self.taken.chunks_mut(*block_agents));
        let parts = parts.map(|(((((((block, v), gradient), accumulator), next_sent), t), d), taken)| {
            ExactBlock { round: &round, block, v, gradient, accumulator, next_sent, t, d, taken }
        });
        // Compiled for the vector registers of this machine; the bits are the same on every other.
        let outcome: Result<(), (usize, Fault)> = cores::map(parts, |part| Arch::new().dispatch(part));
        std::mem::swap(&mut self.sent, &mut self.next_sent);
        self.round += 1;
        outcome.map_err(|(agent, fault)| {
            DivergenceError::from_fault(u64::from(self.round), agent, &self.shape, fault)
        })?;
        self.begin_round();
        Ok(())
    }

    fn phases(&self) -> Phases {
        self.constants.phases
    }

    fn round(&self) -> u64 {
        u64::from(self.round)
    }

    fn metrics(&self) -> Metrics {
        let defect = self.defect();
        self.meter.measure(
            self.round(),
            States { task: &self.task, v: &self.v, d: &self.gradient, defect: &defect },
        )
    }

    /// One frame per agent and round.
    fn counts(&self) -> FrameCounts {
        FrameCounts { sent: self.round() * self.schedule.agents() as u64, ..FrameCounts::default() }
    }

    fn answer(&self) -> Answer {
        Answer::new(self.shape, &self.v)
    }

    fn scores(&self) -> Vec<Score> {
        self.task.scores(&self.v)
    }

    fn view(&self, request: &ViewRequest) -> SwarmView {
        let mut view = SwarmView::of_table(&self.links, self.round(), request);
        view.add_deviations(&self.v, self.shape.words(), self.shape.exchanged());
        view
    }
}
