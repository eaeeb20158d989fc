//! Plain FAB over a faulty air: what happens to the published algorithm when frames are lost, late or doubled.
//!
//! A frame carries its sender's decision and, for each who hears it, the same share of its tracker. What is lost takes its
//! mass with it, what comes twice counts twice, and the sender cannot know.

use super::MixingRule;
use super::method_swarm::{MethodFrames, MethodStates, RoundMethod};
use super::plain::{ArrayFabConfig, defect, gradients_at};
use crate::task::Task;
use fabswarm_shared::fab::{Order, descend_with_momentum, gather, pull_weight, track};
use fabswarm_shared::linear::scaled;
use fabswarm_shared::problem::{NoiseKey, Problem, Shape};
use fabswarm_shared::scalar::Scalar;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

/// The broadcasts of all agents in one round.
#[derive(Clone, Debug)]
struct Broadcasts<S> {
    v: Vec<S>,
    /// `b_ij·t_j`: what each who hears an agent adds to its tracker.
    shares: Vec<S>,
}

/// Plain FAB with one frame per agent and round.
#[derive(Debug)]
pub(crate) struct FaultyAirFab<S> {
    task: Rc<Task<S>>,
    constants: ArrayFabConfig<S>,
    shape: Shape,
    /// Each word's step size.
    steps: Vec<S>,
    round: u32,
    states: MethodStates<S>,
    t: Vec<S>,
    /// m of momentum.
    accumulator: Vec<S>,
    /// Rounds that may still arrive, the newest first.
    broadcasts: VecDeque<Broadcasts<S>>,
    rounds_remembered: usize,
}

impl<S: Scalar> FaultyAirFab<S> {
    /// `agents` agents at rest at the task's starting point. Frames arrive at most `delay` rounds late.
    pub(crate) fn new(task: Rc<Task<S>>, agents: usize, constants: ArrayFabConfig<S>, delay: u32) -> Self {
        let shape = task.shape();
        let words = shape.words();
        let v = task.start().repeat(agents);
        let d = gradients_at(&task, &constants.penalty, &v);
        let mut steps = vec![S::ZERO; words];
        constants.steps.pack(&shape, &mut steps);
        Self {
            shape,
            steps,
            round: 0,
            t: d.clone(),
            accumulator: vec![S::ZERO; d.len()],
            states: MethodStates { v, d, defect: vec![0.0; words] },
            broadcasts: VecDeque::new(),
            rounds_remembered: delay as usize + 1,
            task,
            constants,
        }
    }

    /// The words of an agent in packed states.
    fn row(&self, agent: usize) -> Range<usize> {
        let words = self.shape.words();
        agent * words..(agent + 1) * words
    }

    /// Resets an agent that restarts without its memory to the initial state.
    fn forget(&mut self, agent: usize) {
        let own = self.row(agent);
        let (v, d) = (&mut self.states.v[own.clone()], &mut self.states.d[own.clone()]);
        v.copy_from_slice(&self.task.start());
        let problem = self.task.problem(agent);
        let mut scratch = vec![S::ZERO; problem.scratch_words()];
        let at = NoiseKey { agent: agent as u32, round: self.round };
        problem.penalty_gradient(&self.constants.penalty, at, v, d, &mut scratch);
        self.t[own.clone()].copy_from_slice(d);
        self.accumulator[own].fill(S::ZERO);
    }

    /// Broadcasts of this round: agents divide their trackers among the agents that should hear them. Returns what each keeps.
    fn broadcast(&mut self, frames: &MethodFrames) -> Vec<S> {
        let mut shares = self.t.clone();
        let rows = shares.chunks_exact_mut(self.shape.words()).zip(&frames.listeners);
        let kept = rows.map(|(share, &listeners)| {
            let (own, others) = match &self.constants.mixing {
                MixingRule::Degrees(weights) => weights.push(listeners),
                MixingRule::Explicit { .. } => (S::ONE, S::ZERO),
            };
            share.iter_mut().for_each(|word| *word *= others);
            own
        });
        let kept = kept.collect();
        if self.constants.order == Order::AdaptFirst {
            for agent in frames.running() {
                let own = self.row(agent);
                let (m, v) = (&mut self.accumulator[own.clone()], &mut self.states.v[own.clone()]);
                descend_with_momentum(self.constants.steps.momentum, &self.steps, &self.t[own], m, v);
            }
        }
        self.broadcasts.push_front(Broadcasts { v: self.states.v.clone(), shares });
        self.broadcasts.truncate(self.rounds_remembered);
        kept
    }
}

impl<S: Scalar> RoundMethod<S> for FaultyAirFab<S> {
    fn round(&mut self, frames: &MethodFrames) {
        frames.forgetting.iter().for_each(|&agent| self.forget(agent));
        let kept = self.broadcast(frames);
        let words = self.shape.words();
        let exchanged = self.shape.exchanged();
        let mut scratch = vec![S::ZERO; self.task.problem(0).scratch_words()];
        let mut newest = vec![S::ZERO; words];
        for agent in frames.running() {
            let own = self.row(agent);
            let (v, t) = (&mut self.states.v[own.clone()], &mut self.t[own.clone()]);
            let broadcasts = &self.broadcasts;
            let of = |state: fn(&Broadcasts<S>) -> &[S]| {
                let (heard, exchanged) =
                    (frames.heard[agent].iter().zip(&frames.ages[agent]), exchanged.clone());
                heard
                    .map(move |(&sender, &age)| &state(&broadcasts[age])[sender * words..][exchanged.clone()])
            };
            let mut sums = v[exchanged.clone()].to_vec();
            gather::<1, _>(&mut sums, of(|broadcasts| &broadcasts.v));
            scaled(pull_weight(frames.heard[agent].len()), &sums, &mut v[exchanged.clone()]);
            if self.constants.order == Order::CombineFirst {
                let (momentum, m) = (self.constants.steps.momentum, &mut self.accumulator[own.clone()]);
                descend_with_momentum(momentum, &self.steps, t, m, v);
            }
            let problem = self.task.problem(agent);
            problem.project(&mut v[..self.shape.x]);
            let at = NoiseKey { agent: agent as u32, round: self.round + 1 };
            problem.penalty_gradient(&self.constants.penalty, at, v, &mut newest, &mut scratch);
            let pushed = &mut t[exchanged.clone()];
            pushed.iter_mut().for_each(|word| *word *= kept[agent]);
            gather::<1, _>(pushed, of(|broadcasts| &broadcasts.shares));
            track(&newest, &mut self.states.d[own], t);
        }
        self.round += 1;
        self.states.defect = defect(&self.t, &self.states.d, words);
    }

    fn states(&self) -> &MethodStates<S> {
        &self.states
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{AlgorithmKind, Crash, Crashes, Outage, OutageList, Scenario};
    use crate::swarm::Swarm;
    use crate::trial;

    /// The x of agent 3 after each of `rounds` rounds.
    fn decisions(rounds: usize, change: impl FnOnce(&mut Scenario)) -> Vec<Vec<f64>> {
        let mut scenario = Scenario::default();
        scenario.algorithm.kind = AlgorithmKind::Fab;
        (scenario.algorithm.eta_x, scenario.algorithm.eta_y, scenario.algorithm.eta_z) = (0.6, 0.06, 0.06);
        change(&mut scenario);
        let mut swarm: Box<dyn Swarm> = trial::build(&scenario).unwrap();
        let after_step = |_| {
            swarm.step().unwrap();
            let [x, ..] = swarm.answer().variables();
            x.words[3 * x.width..4 * x.width].to_vec()
        };
        (0..rounds).map(after_step).collect()
    }

    #[test]
    fn frozen_agent_does_not_move() {
        let frozen = Outage { agent: 3, from: 5, rounds: 4 };
        let decisions = decisions(12, |scenario| scenario.faults.frozen = OutageList(vec![frozen]));
        for round in 1..12 {
            assert_eq!(decisions[round] == decisions[round - 1], (5..9).contains(&round), "round {round}");
        }
    }

    #[test]
    fn agent_that_forgets_starts_where_it_started() {
        // It hears nobody in its first round, so that its own start alone decides where it goes.
        let after_restart = |keeps_memory| {
            decisions(31, |scenario| {
                let crash = Crash { agent: 3, round: 20, down_rounds: 10, keeps_memory };
                scenario.faults.crashes = Crashes(vec![crash]);
                scenario.faults.radio_off = OutageList(vec![Outage { agent: 3, from: 30, rounds: 1 }]);
            })
        };
        let first = decisions(1, |scenario| {
            scenario.faults.radio_off = OutageList(vec![Outage { agent: 3, from: 0, rounds: 1 }]);
        });
        assert_eq!(after_restart(false)[30], first[0]);
        assert_ne!(after_restart(true)[30], first[0]);
    }
}
