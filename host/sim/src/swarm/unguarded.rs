//! Plain FAB over a faulty air: what happens to the published algorithm when frames are lost, late or doubled.
//!
//! A frame carries its sender's decision and, for each who hears it, the same share of its tracker. What is lost takes its
//! mass with it, what comes twice counts twice, and the sender cannot know.

use super::measure::{Meter, Metrics, States};
use super::plain::{FabConstants, defect, gradients_at};
use super::{Answer, DivergenceError, MixingRule, Swarm, SwarmError, SwarmView, ViewRequest};
use crate::air::FrameCounts;
use crate::air::{Air, FrameVerdict};
use crate::task::{Score, Task};
use fabswarm_shared::agent::Fault;
use fabswarm_shared::fab::{Order, descend_with_momentum, gather, pull_weight, track};
use fabswarm_shared::graph::Schedule;
use fabswarm_shared::linear::scaled;
use fabswarm_shared::problem::{Moment, Problem, Shape};
use fabswarm_shared::scalar::Scalar;
use std::collections::VecDeque;

/// The broadcasts of all agents in one round.
#[derive(Clone, Debug)]
struct Broadcasts<S> {
    v: Vec<S>,
    /// `b_ij·t_j`: what each who hears an agent adds to its tracker.
    shares: Vec<S>,
}

/// Plain FAB with one frame per agent and round, over an air with faults.
#[derive(Debug)]
pub struct UnguardedFab<S> {
    task: Task<S>,
    air: Air,
    constants: FabConstants<S>,
    shape: Shape,
    /// Each word's step size.
    steps: Vec<S>,
    round: u32,
    v: Vec<S>,
    t: Vec<S>,
    d: Vec<S>,
    /// m of momentum.
    accumulator: Vec<S>,
    /// b_jj of each agent in this round.
    kept: Vec<S>,
    /// Rounds that may still arrive, the newest first.
    broadcasts: VecDeque<Broadcasts<S>>,
    rounds_remembered: usize,
    meter: Meter,
}

impl<S: Scalar> UnguardedFab<S> {
    /// A swarm at rest at the task's starting point. Frames arrive at most `delay` rounds late.
    pub fn new(task: Task<S>, air: Air, constants: FabConstants<S>, delay: u32) -> Self {
        let shape = task.shape();
        let words = shape.words();
        let mut start = vec![S::ZERO; words];
        task.start(&mut start);
        let v = start.repeat(air.source().agents());
        let d = gradients_at(&task, &constants.penalty, &v);
        let mut meter = Meter::new(&task);
        meter.start(&v, &d);
        let mut steps = vec![S::ZERO; words];
        constants.steps.pack(&shape, &mut steps);
        Self {
            shape,
            steps,
            round: 0,
            t: d.clone(),
            accumulator: vec![S::ZERO; d.len()],
            kept: vec![S::ONE; air.source().agents()],
            v,
            d,
            broadcasts: VecDeque::new(),
            rounds_remembered: delay as usize + 1,
            meter,
            task,
            air,
            constants,
        }
    }

    /// Resets agents that restart without their memory to the initial state.
    fn forget(&mut self) {
        let words = self.shape.words();
        let restarts = self.air.restarts(self.round).filter(|crash| !crash.keeps_memory);
        for agent in restarts.map(|crash| crash.agent) {
            let own = agent * words..(agent + 1) * words;
            let (v, d) = (&mut self.v[own.clone()], &mut self.d[own.clone()]);
            self.task.start(v);
            let problem = self.task.problem(agent);
            let mut scratch = vec![S::ZERO; problem.scratch_words()];
            let at = Moment { agent: agent as u32, round: self.round };
            problem.penalty_gradient(&self.constants.penalty, at, v, d, &mut scratch);
            self.t[own.clone()].copy_from_slice(d);
            self.accumulator[own].fill(S::ZERO);
        }
    }

    /// Broadcasts of this round: agents divide their trackers among the agents that should hear them.
    fn broadcast(&mut self) {
        let agents = self.air.source().agents();
        let mut listeners = vec![0; agents];
        for agent in 0..agents {
            self.air.source().heard_by(agent, self.round, |sender| listeners[sender] += 1);
        }
        let words = self.shape.words();
        let mut shares = self.t.clone();
        for ((share, kept), listeners) in shares.chunks_exact_mut(words).zip(&mut self.kept).zip(listeners) {
            let (own, others) = match &self.constants.mixing {
                MixingRule::Degrees(weights) => weights.push(listeners),
                MixingRule::Explicit { .. } => (S::ONE, S::ZERO),
            };
            *kept = own;
            share.iter_mut().for_each(|word| *word *= others);
        }
        if self.constants.order == Order::AdaptFirst {
            (0..agents).filter(|&agent| self.air.is_running(agent, self.round)).for_each(|agent| {
                let own = agent * words..(agent + 1) * words;
                let (m, v) = (&mut self.accumulator[own.clone()], &mut self.v[own.clone()]);
                descend_with_momentum(self.constants.steps.momentum, &self.steps, &self.t[own], m, v);
            });
        }
        self.broadcasts.push_front(Broadcasts { v: self.v.clone(), shares });
        self.broadcasts.truncate(self.rounds_remembered);
        for agent in 0..agents {
            if self.air.is_running(agent, self.round) {
                self.air.transmit(self.round, agent, &self.round.to_le_bytes());
            }
        }
    }

    /// For each receiver, the frames it heard as (sender, age in rounds).
    fn listen(&mut self) -> Vec<Vec<(usize, usize)>> {
        let mut heard = vec![Vec::new(); self.air.source().agents()];
        let (round, remembered) = (self.round, self.broadcasts.len());
        self.air.deliver(round, |receiver, sender, bytes| {
            let sent = <[u8; 4]>::try_from(bytes).map_or(round, u32::from_le_bytes);
            let age = round.wrapping_sub(sent) as usize;
            if age >= remembered {
                return FrameVerdict::Refused("malformed");
            }
            heard[receiver].push((sender, age));
            FrameVerdict::Taken
        });
        heard
    }
}

impl<S: Scalar> Swarm for UnguardedFab<S> {
    fn step(&mut self) -> Result<(), SwarmError> {
        self.forget();
        self.broadcast();
        let heard = self.listen();
        let words = self.shape.words();
        let exchanged = self.shape.exchanged();
        let mut scratch = vec![S::ZERO; self.task.problem(0).scratch_words()];
        let mut newest = vec![S::ZERO; words];
        let mut broken = None;
        for (agent, heard) in heard.iter().enumerate() {
            if !self.air.is_running(agent, self.round) {
                continue;
            }
            let own = agent * words..(agent + 1) * words;
            let (v, t) = (&mut self.v[own.clone()], &mut self.t[own.clone()]);
            let broadcasts = &self.broadcasts;
            let of = |state: fn(&Broadcasts<S>) -> &[S]| {
                let exchanged = exchanged.clone();
                heard
                    .iter()
                    .map(move |&(sender, age)| &state(&broadcasts[age])[sender * words..][exchanged.clone()])
            };
            let mut sums = v[exchanged.clone()].to_vec();
            gather::<1, _>(&mut sums, of(|broadcasts| &broadcasts.v));
            scaled(pull_weight(heard.len()), &sums, &mut v[exchanged.clone()]);
            if self.constants.order == Order::CombineFirst {
                let (momentum, m) = (self.constants.steps.momentum, &mut self.accumulator[own.clone()]);
                descend_with_momentum(momentum, &self.steps, t, m, v);
            }
            let problem = self.task.problem(agent);
            problem.project(&mut v[..self.shape.x]);
            let at = Moment { agent: agent as u32, round: self.round + 1 };
            problem.penalty_gradient(&self.constants.penalty, at, v, &mut newest, &mut scratch);
            let pushed = &mut t[exchanged.clone()];
            pushed.iter_mut().for_each(|word| *word *= self.kept[agent]);
            gather::<1, _>(pushed, of(|broadcasts| &broadcasts.shares));
            track(&newest, &mut self.d[own], t);
            if broken.is_none() {
                broken = v.iter().position(|word| !word.is_finite()).map(|word| (agent, word));
            }
        }
        self.round += 1;
        broken.map_or(Ok(()), |(agent, word)| {
            Err(DivergenceError::from_fault(
                u64::from(self.round),
                agent,
                &self.shape,
                Fault::in_decision(word),
            )
            .into())
        })
    }

    fn round(&self) -> u64 {
        u64::from(self.round)
    }

    fn metrics(&self) -> Metrics {
        let defect = defect(&self.t, &self.d, self.shape.words());
        self.meter.measure(self.round(), States { task: &self.task, v: &self.v, d: &self.d, defect: &defect })
    }

    fn counts(&self) -> FrameCounts {
        self.air.counters().into()
    }

    fn answer(&self) -> Answer {
        Answer::new(self.shape, &self.v)
    }

    fn scores(&self) -> Vec<Score> {
        self.task.scores(&self.v)
    }

    fn air(&self) -> Option<&Air> {
        Some(&self.air)
    }

    fn view(&self, request: &ViewRequest, view: &mut SwarmView) {
        view.clear(self.round());
        view.add_agents_of(&self.air, self.round);
        view.add_links_of(&self.air, request);
        view.add_deviations(&self.v, self.shape.words(), self.shape.exchanged());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Crash, Crashes, Outage, OutageList, Scenario};
    use fabswarm_shared::fab::Steps;
    use fabswarm_shared::graph::Weights;
    use fabswarm_shared::problem::{Penalty, PenaltyForm};

    fn swarm(change: impl FnOnce(&mut Scenario)) -> UnguardedFab<f64> {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        let constants = FabConstants {
            steps: Steps { x: 0.6, y: 0.06, z: 0.06, momentum: 0.0 },
            order: Order::CombineFirst,
            penalty: Penalty { lambda: 60.0, normalise: true, form: PenaltyForm::OneSided },
            mixing: MixingRule::Degrees(Weights::Uniform),
        };
        UnguardedFab::new(Task::draw(&scenario), Air::new(&scenario).unwrap(), constants, 0)
    }

    fn decision(swarm: &UnguardedFab<f64>, agent: usize) -> Vec<f64> {
        swarm.v[agent * swarm.shape.words()..][..swarm.shape.words()].to_vec()
    }

    #[test]
    fn who_is_frozen_does_not_move() {
        let frozen = Outage { agent: 3, from: 5, rounds: 4 };
        let mut swarm = swarm(|scenario| scenario.faults.frozen = OutageList(vec![frozen]));
        for round in 0..12 {
            let before = decision(&swarm, 3);
            swarm.step().unwrap();
            assert_eq!(decision(&swarm, 3) == before, (5..9).contains(&round), "round {round}");
        }
    }

    #[test]
    fn who_forgets_starts_where_it_started() {
        let crash = Crash { agent: 3, round: 20, down_rounds: 10, keeps_memory: false };
        let mut forgetful = swarm(|scenario| scenario.faults.crashes = Crashes(vec![crash]));
        let mut mindful = swarm(|scenario| {
            scenario.faults.crashes = Crashes(vec![Crash { keeps_memory: true, ..crash }]);
        });
        let start = decision(&forgetful, 3);
        for _ in 0..30 {
            forgetful.step().unwrap();
            mindful.step().unwrap();
        }
        assert_eq!(decision(&forgetful, 3), decision(&mindful, 3));
        forgetful.forget();
        assert_eq!(decision(&forgetful, 3), start);
        mindful.forget();
        assert_ne!(decision(&mindful, 3), start);
    }
}
