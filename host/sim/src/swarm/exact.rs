//! The broadcast ledger on arrays: the same bits as agents over an air without faults, but without frames.
//!
//! It runs swarms that are too large to simulate agent by agent, and it is the reference for agents over the air.

use super::links::{LinkBlock, LinkTable};
use super::measure::{Meter, Metrics, States};
use super::plain::split_by_blocks;
use super::{Answer, DivergenceError, Swarm, SwarmError, SwarmView, ViewRequest};
use crate::air::FrameCounts;
use crate::cores;
use crate::task::{Score, Task};
use fabswarm_shared::agent::Fault;
use fabswarm_shared::fab::{Steps, Turns, gather, pull_weight};
use fabswarm_shared::graph::Schedule;
use fabswarm_shared::ledger::{self, ShareWeights, descend, descend_word};
use fabswarm_shared::linear::first_exception;
use fabswarm_shared::problem::{Moment, Penalty, Problem, Shape};
use pulp::{Arch, NullaryFnOnce};

/// The constants of a swarm with a ledger.
#[derive(Clone, Copy, Debug)]
pub struct LedgerConstants {
    /// Step sizes.
    pub steps: Steps<f32>,
    /// Rounds in which agents push, pull and descend.
    pub turns: Turns,
    /// Penalty on the lower level.
    pub penalty: Penalty<f32>,
    /// κ.
    pub self_weight: f32,
    /// Size of an agent's audience.
    pub audience: u32,
}

/// ρ: what one agent has taken from each sender it ever heard, in ascending order of senders.
type TakenSums = Vec<(u32, Box<[i32]>)>;

/// All agents of a swarm, their states packed one agent after the other.
#[derive(Debug)]
pub struct ExactFab<G> {
    task: Task<f32>,
    schedule: G,
    constants: LedgerConstants,
    share_weights: ShareWeights,
    shape: Shape,
    round: u32,
    links: LinkTable,
    meter: Meter,
    v: Vec<f32>,
    next_v: Vec<f32>,
    gradient: Vec<f32>,
    /// m of momentum, packed like `v`.
    accumulator: Vec<f32>,
    /// Exchanged words only, here and below.
    t: Vec<i32>,
    d: Vec<i32>,
    before: Vec<i32>,
    sigma: Vec<i32>,
    carry: Vec<i64>,
    taken: Vec<TakenSums>,
}

/// One block of agents and what it writes.
struct ExactBlock<'a> {
    block: &'a LinkBlock,
    next_v: &'a mut [f32],
    gradient: &'a mut [f32],
    accumulator: &'a mut [f32],
    t: &'a mut [i32],
    d: &'a mut [i32],
    taken: &'a mut [TakenSums],
}

/// What all blocks read.
struct ExactRound<'a> {
    task: &'a Task<f32>,
    constants: &'a LedgerConstants,
    shape: Shape,
    round: u32,
    v: &'a [f32],
    before: &'a [i32],
    sigma: &'a [i32],
}

/// The work on one block, compiled for the vector registers of this machine.
struct ExactRoundKernel<'r, 'a, 'p> {
    round: &'r ExactRound<'a>,
    part: ExactBlock<'p>,
}

impl NullaryFnOnce for ExactRoundKernel<'_, '_, '_> {
    type Output = Result<(), (usize, Fault)>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        self.round.run_agents(self.part)
    }
}

impl ExactRound<'_> {
    /// Runs the agents of one block; returns the first that stopped and why.
    fn run(&self, part: ExactBlock<'_>) -> Result<(), (usize, Fault)> {
        // Compiled for the vector registers of this machine; the bits are the same on every other.
        Arch::new().dispatch(ExactRoundKernel { round: self, part })
    }

    #[inline(always)]
    fn run_agents(&self, part: ExactBlock<'_>) -> Result<(), (usize, Fault)> {
        let words = self.shape.words();
        let exchanged = self.shape.exchanged();
        let (local, shared) = (exchanged.start, exchanged.len());
        let mut scratch = vec![0.0; self.task.problem(0).scratch_words()];
        let rows = part.block.rows().zip(part.next_v.chunks_exact_mut(words));
        let rows = rows.zip(part.gradient.chunks_exact_mut(words)).zip(part.taken);
        let rows = rows.zip(part.accumulator.chunks_exact_mut(words));
        let rows = rows.zip(part.t.chunks_exact_mut(shared)).zip(part.d.chunks_exact_mut(shared));
        for (((((((agent, senders), next_v), gradient), taken), m), t), d) in rows {
            let weight: f32 = pull_weight(senders.len());
            for sender in senders.clone() {
                let known = taken.binary_search_by_key(&(sender as u32), |(sender, _)| *sender);
                let at = known.unwrap_or_else(|at| {
                    taken.insert(at, (sender as u32, vec![0; shared].into()));
                    at
                });
                ledger::take(&self.sigma[sender * shared..][..shared], &mut taken[at].1, t);
            }
            let v = &self.v[agent * words..][..words];
            next_v.copy_from_slice(v);
            if self.constants.turns.pulls(self.round) {
                let heard = senders.map(|sender| &self.v[sender * words..][exchanged.clone()]);
                let next = &mut next_v[local..];
                gather::<3, _>(next, heard);
                next.iter_mut().for_each(|word| *word *= weight);
            }
            let steps = &self.constants.steps;
            if self.constants.turns.descends(self.round) {
                let (local_m, m) = m.split_at_mut(local);
                let before = &self.before[agent * shared..][..shared];
                descend(&self.shape, steps, before, m, &mut next_v[local..]);
                for ((next, m), &d) in next_v.iter_mut().zip(local_m).zip(&*gradient) {
                    descend_word(steps.momentum, steps.x, d, m, next);
                }
            } else {
                m.fill(0.0);
            }
            let problem = self.task.problem(agent);
            problem.project(&mut next_v[..self.shape.x]);
            if let Some(word) = first_exception(next_v, f32::is_finite) {
                return Err((agent, Fault::in_decision(word)));
            }
            let at = Moment { agent: agent as u32, round: self.round + 1 };
            problem.penalty_gradient(&self.constants.penalty, at, next_v, gradient, &mut scratch);
            ledger::track(&gradient[local..], d, t)
                .map_err(|error| (agent, Fault::from_gradient(error, local)))?;
        }
        Ok(())
    }
}

impl<G: Schedule + Sync> ExactFab<G> {
    /// A swarm at rest at the task's starting point.
    ///
    /// # Errors
    /// If a gradient at the start is not finite or outside the ledger's range.
    pub fn new(task: Task<f32>, schedule: G, constants: LedgerConstants) -> Result<Self, DivergenceError> {
        let shape = task.shape();
        let agents = schedule.agents();
        let (words, shared) = (shape.words(), shape.exchanged().len());
        let mut start = vec![0.0; words];
        task.start(&mut start);
        let mut swarm = Self {
            share_weights: ShareWeights::new(constants.self_weight, constants.audience),
            shape,
            round: 0,
            links: LinkTable::new(agents),
            meter: Meter::new(&task),
            v: start.repeat(agents),
            next_v: vec![0.0; agents * words],
            gradient: vec![0.0; agents * words],
            accumulator: vec![0.0; agents * words],
            t: vec![0; agents * shared],
            d: vec![0; agents * shared],
            before: vec![0; agents * shared],
            sigma: vec![0; agents * shared],
            carry: vec![0; agents * shared],
            taken: vec![Vec::new(); agents],
            task,
            schedule,
            constants,
        };
        let mut scratch = vec![0.0; swarm.task.problem(0).scratch_words()];
        for agent in 0..agents {
            let at = Moment { agent: agent as u32, round: 0 };
            let gradient = &mut swarm.gradient[agent * words..][..words];
            let v = &swarm.v[agent * words..][..words];
            swarm.task.problem(agent).penalty_gradient(&constants.penalty, at, v, gradient, &mut scratch);
            let range = agent * shared..(agent + 1) * shared;
            let local = shape.exchanged().start;
            ledger::track(&gradient[local..], &mut swarm.d[range.clone()], &mut swarm.t[range]).map_err(
                |error| DivergenceError::from_fault(0, agent, &shape, Fault::from_gradient(error, local)),
            )?;
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
        self.before.copy_from_slice(&self.t);
        if self.constants.turns.pushes(self.round) {
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

impl<G: Schedule + Sync> Swarm for ExactFab<G> {
    fn step(&mut self) -> Result<(), SwarmError> {
        self.links.lay(&self.schedule, self.round);
        let round = ExactRound {
            task: &self.task,
            constants: &self.constants,
            shape: self.shape,
            round: self.round,
            v: &self.v,
            before: &self.before,
            sigma: &self.sigma,
        };
        let (words, shared) = (self.shape.words(), self.shape.exchanged().len());
        let blocks = self.links.blocks();
        let next_v = split_by_blocks(&mut self.next_v, blocks, words);
        let gradient = split_by_blocks(&mut self.gradient, blocks, words);
        let accumulator = split_by_blocks(&mut self.accumulator, blocks, words);
        let t = split_by_blocks(&mut self.t, blocks, shared);
        let d = split_by_blocks(&mut self.d, blocks, shared);
        let taken = split_by_blocks(&mut self.taken, blocks, 1);
        let parts = blocks.iter().zip(next_v).zip(gradient).zip(accumulator).zip(t).zip(d).zip(taken);
        let mut parts = parts.map(|((((((block, next_v), gradient), accumulator), t), d), taken)| {
            ExactBlock { block, next_v, gradient, accumulator, t, d, taken }
        });
        let outcome: Result<(), (usize, Fault)> = if blocks.len() == 1 {
            parts.try_for_each(|part| round.run(part))
        } else {
            cores::map(parts.collect(), |part| round.run(part)).into_iter().collect()
        };
        std::mem::swap(&mut self.v, &mut self.next_v);
        self.round += 1;
        outcome.map_err(|(agent, fault)| {
            DivergenceError::from_fault(u64::from(self.round), agent, &self.shape, fault)
        })?;
        self.begin_round();
        Ok(())
    }

    fn turns(&self) -> Turns {
        self.constants.turns
    }

    fn round(&self) -> u64 {
        u64::from(self.round)
    }

    fn metrics(&self) -> Metrics {
        let defect = self.defect();
        self.meter.measure(self.round(), States { v: &self.v, d: &self.gradient, defect: &defect })
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

    fn view(&self, request: &ViewRequest, view: &mut SwarmView) {
        view.clear(self.round());
        view.add_table(self.round(), &self.links, request);
        view.add_deviations(&self.v, self.shape.words(), self.shape.exchanged());
    }
}
