//! Agents with a method that is not FAB, over the air and with its faults.
//!
//! A frame on the air carries the number of its round. What the method sends with it is taken from its sender where it arrives: a
//! lost frame takes its mass along, and one that comes twice counts twice. A late frame counts as lost.

use super::measure::{Meter, Metrics, States};
use super::{Answer, DivergenceError, Swarm, SwarmError, SwarmView, ViewRequest};
use crate::air::{Air, FrameCounts, FrameVerdict};
use crate::task::{Score, Task};
use fabswarm_shared::agent::Fault;
use fabswarm_shared::graph::Schedule;
use std::fmt::Debug;
use std::rc::Rc;

/// The frames of a round.
#[derive(Clone, Debug, Default)]
pub struct MethodFrames {
    /// For each agent, how many others its frame was meant for.
    pub listeners: Vec<usize>,
    /// For each agent, the senders of the frames that arrived.
    pub heard: Vec<Vec<usize>>,
}

/// Packed states of all agents, one behind the other.
#[derive(Clone, Debug)]
pub struct MethodStates {
    /// Decisions `[x | y | z]`.
    pub v: Vec<f64>,
    /// The directions in which they descend, laid out alike; NaN where the method does not tell.
    pub d: Vec<f64>,
    /// `Σt − Σd`, word by word, where the method tracks gradients.
    pub defect: Vec<f64>,
}

/// A method that takes all agents of a swarm through its rounds.
pub trait RoundMethod: Debug {
    /// Takes all agents through a round.
    fn round(&mut self, frames: &MethodFrames);
    /// The states after it.
    fn states(&self) -> MethodStates;
}

/// A swarm with such a method.
#[derive(Debug)]
pub struct MethodSwarm {
    task: Rc<Task<f64>>,
    air: Air,
    method: Box<dyn RoundMethod>,
    states: MethodStates,
    round: u32,
    meter: Meter,
}

impl MethodSwarm {
    /// Agents at rest before their first round.
    pub fn new(task: Rc<Task<f64>>, air: Air, method: Box<dyn RoundMethod>) -> Self {
        let states = method.states();
        let mut meter = Meter::new(&task);
        meter.start(&states.v, &states.d);
        Self { task, air, method, states, round: 0, meter }
    }

    /// Sends a frame of every agent.
    fn exchange(&mut self) -> MethodFrames {
        let (agents, round) = (self.air.agents(), self.round);
        let mut frames = MethodFrames { listeners: vec![0; agents], heard: vec![Vec::new(); agents] };
        for agent in 0..agents {
            self.air.transmit(round, agent, &round.to_le_bytes());
        }
        self.air.deliver(round, |receiver, sender, bytes| {
            if bytes != round.to_le_bytes() {
                return FrameVerdict::Refused("malformed");
            }
            frames.heard[receiver].push(sender);
            FrameVerdict::Taken
        });
        for agent in 0..agents {
            self.air.source().heard_by(agent, round, |sender| frames.listeners[sender] += 1);
        }
        frames
    }
}

impl Swarm for MethodSwarm {
    fn step(&mut self) -> Result<(), SwarmError> {
        let frames = self.exchange();
        self.method.round(&frames);
        self.states = self.method.states();
        self.round += 1;
        let Some(word) = self.states.v.iter().position(|word| !word.is_finite()) else { return Ok(()) };
        let (shape, round) = (self.task.shape(), u64::from(self.round));
        let (agent, word) = (word / shape.words(), word % shape.words());
        Err(DivergenceError::from_fault(round, agent, &shape, Fault::in_decision(word)).into())
    }

    fn metrics(&self) -> Metrics {
        let MethodStates { v, d, defect } = &self.states;
        self.meter.measure(self.round(), States { task: &self.task, v, d, defect })
    }

    fn round(&self) -> u64 {
        u64::from(self.round)
    }

    fn counts(&self) -> FrameCounts {
        self.air.counters().into()
    }

    fn answer(&self) -> Answer {
        Answer::new(self.task.shape(), &self.states.v)
    }

    fn scores(&self) -> Vec<Score> {
        self.task.scores(&self.states.v)
    }

    fn air(&self) -> Option<&Air> {
        Some(&self.air)
    }

    fn view(&self, request: &ViewRequest, view: &mut SwarmView) {
        view.clear(self.round());
        view.add_agents_of(&self.air, self.round);
        view.add_links_of(&self.air, request);
        let shape = self.task.shape();
        view.add_deviations(&self.states.v, shape.words(), shape.exchanged());
    }
}
