//! Agents without a ledger over the air and with its faults: those of plain FAB, of a method that FAB is compared with, or of a program.
//!
//! A frame on the air carries the number of its round. What the method sends with it is taken from its sender where it arrives: a
//! lost frame takes its mass along, and one that comes twice counts twice. Frames have no seal, so that a forged one counts as a frame
//! of its alleged sender.

use super::measure::{Meter, Metrics, States};
use super::{Answer, DivergenceError, Swarm, SwarmError, SwarmView, ViewRequest};
use crate::air::{Air, FrameVerdict};
use crate::task::{Score, Task};
use fabswarm_shared::agent::Fault;
use fabswarm_shared::graph::Schedule;
use fabswarm_shared::scalar::Scalar;
use std::fmt::Debug;
use std::rc::Rc;

/// The frames of a round.
#[derive(Clone, Debug, Default)]
pub struct MethodFrames {
    /// For each agent, how many others its frame was meant for.
    pub listeners: Vec<usize>,
    /// For each agent, the senders of the frames that arrived.
    pub heard: Vec<Vec<usize>>,
    /// By how many rounds each of these frames is late.
    pub ages: Vec<Vec<usize>>,
    /// For each agent, whether it computes in this round.
    pub is_running: Vec<bool>,
    /// The agents that start again without their memory.
    pub forgetting: Vec<usize>,
}

impl MethodFrames {
    /// The agents that compute in this round.
    pub(super) fn running(&self) -> impl Iterator<Item = usize> {
        self.is_running.iter().enumerate().filter(|(_, is_running)| **is_running).map(|(agent, _)| agent)
    }
}

/// Packed states of all agents, one behind the other.
#[derive(Clone, Debug)]
pub struct MethodStates<S = f64> {
    /// Decisions `[x | y | z]`.
    pub v: Vec<S>,
    /// The directions in which they descend, laid out alike; NaN where the method does not tell.
    pub d: Vec<S>,
    /// `Σt − Σd`, word by word, where the method tracks gradients.
    pub defect: Vec<f64>,
}

/// A method that takes all agents of a swarm through its rounds.
pub trait RoundMethod<S = f64>: Debug {
    /// Takes all agents through a round.
    fn round(&mut self, frames: &MethodFrames);
    /// The states after it.
    fn states(&self) -> &MethodStates<S>;
}

/// A swarm with such a method.
#[derive(Debug)]
pub struct MethodSwarm<S = f64> {
    task: Rc<Task<S>>,
    air: Air,
    method: Box<dyn RoundMethod<S>>,
    /// A frame that is later counts as lost.
    most_late: u32,
    round: u32,
    meter: Meter,
}

impl<S: Scalar> MethodSwarm<S> {
    /// Agents at rest before their first round. Frames count that are at most `most_late` rounds late; `x_step` is the step on x.
    pub fn new(
        task: Rc<Task<S>>,
        air: Air,
        method: Box<dyn RoundMethod<S>>,
        most_late: u32,
        x_step: S,
    ) -> Self {
        let mut meter = Meter::new(&task, x_step);
        meter.start(&method.states().v, &method.states().d);
        Self { task, air, method, most_late, round: 0, meter }
    }

    /// Sends a frame of every agent.
    fn exchange(&mut self) -> MethodFrames {
        let (agents, round, most_late) = (self.air.agents(), self.round, self.most_late);
        let restarts = self.air.outages().restarts(round).filter(|crash| !crash.keeps_memory);
        let mut frames = MethodFrames {
            listeners: vec![0; agents],
            heard: vec![Vec::new(); agents],
            ages: vec![Vec::new(); agents],
            forgetting: restarts.map(|crash| crash.agent).collect(),
            is_running: (0..agents).map(|agent| self.air.outages().is_running(agent, round)).collect(),
        };
        frames.running().for_each(|agent| self.air.transmit(round, agent, &round.to_le_bytes()));
        self.air.deliver(round, |receiver, sender, bytes| {
            let sent = <[u8; 4]>::try_from(bytes).map_or(round, u32::from_le_bytes);
            let Some(age) = round.checked_sub(sent).filter(|age| *age <= most_late) else {
                return FrameVerdict::Refused("malformed");
            };
            frames.heard[receiver].push(sender);
            frames.ages[receiver].push(age as usize);
            FrameVerdict::Taken
        });
        for agent in 0..agents {
            self.air.source().heard_by(agent, round, |sender| frames.listeners[sender] += 1);
        }
        frames
    }
}

impl<S: Scalar> Swarm for MethodSwarm<S> {
    fn step(&mut self) -> Result<(), SwarmError> {
        let frames = self.exchange();
        self.method.round(&frames);
        self.round += 1;
        let Some(word) = self.method.states().v.iter().position(|word| !word.is_finite()) else {
            return Ok(());
        };
        let (shape, round) = (self.task.shape(), u64::from(self.round));
        let (agent, word) = (word / shape.words(), word % shape.words());
        Err(DivergenceError::from_fault(round, agent, &shape, Fault::in_decision(word)).into())
    }

    fn metrics(&self) -> Metrics {
        let MethodStates { v, d, defect } = self.method.states();
        self.meter.measure(self.round(), States { task: &self.task, v, d, defect })
    }

    fn round(&self) -> u64 {
        u64::from(self.round)
    }

    fn answer(&self) -> Answer {
        Answer::new(self.task.shape(), &self.method.states().v)
    }

    fn scores(&self) -> Vec<Score> {
        self.task.scores(&self.method.states().v)
    }

    fn air(&self) -> Option<&Air> {
        Some(&self.air)
    }

    fn view(&self, request: &ViewRequest) -> SwarmView {
        let (shape, mut view) = (self.task.shape(), SwarmView::of_air(&self.air, self.round, request));
        view.add_deviations(&self.method.states().v, shape.words(), shape.exchanged());
        view
    }
}
