//! A batched swarm over a faulty air against speaking agents of `fabswarm_shared` over the same air.

use fabswarm_shared::agent::{self, Agent, Origin, Received};
use fabswarm_shared::fab::{Order, Steps, descended};
use fabswarm_shared::problem::{Penalty, PenaltyForm, Problem as _};

use super::samples::{AGENTS, ConformanceData, MODEL, TRAINING, VALIDATION};
use super::{Check, distance};
use crate::device::{Device, Result};
use crate::fab::{Fab, FabConfig, UpperLevel};
use crate::training::links::TrainingNetwork;
use fabswarm_sim::air::{Air, FrameVerdict};
use fabswarm_sim::scenario::{AlgorithmKind, Outage, OutageList, Scenario, ScenarioCommand, resolve_for};
use fabswarm_sim::swarm::HeapPeers;

const ROUNDS: u32 = 80;
const WORDS: usize = 64;
const TASK: UpperLevel = UpperLevel::Cleaning { regularisation: 0.05 };
const PENALTY: Penalty<f32> = Penalty { lambda: 2.0, normalise: false, form: PenaltyForm::OneSided };
const STEPS: Steps<f32> = Steps { x: 0.05, y: 0.03, z: 0.03, momentum: 0.6 };
/// Small agents compute in f32.
const TOLERANCE: f64 = 2e-4;

/// Runs hyper-cleaning both ways while frames are lost, late, doubled and out of order, and agents fall silent.
pub fn follows_agents<D: Device>(device: D) -> Result<Check> {
    let scenario = scenario();
    let data = ConformanceData::<f32>::new();
    let reference = reference(&data, &scenario);
    let (mut links, ledger) = TrainingNetwork::new(&scenario).expect("the scenario has an air");
    let config = FabConfig {
        penalty: f64::from(PENALTY.lambda),
        normalise: PENALTY.normalise,
        steps: [STEPS.x, STEPS.y, STEPS.z].map(f64::from),
        momentum: f64::from(STEPS.momentum),
        ledger,
        ..FabConfig::new(AGENTS, TASK, VALIDATION, TRAINING)
    };
    let on_device = data.on_device(&device)?;
    let mut swarm = Fab::new(device, &MODEL, config, on_device, &data.start_on::<D>())?;
    swarm.begin(&data.draw())?;
    for round in 1..=ROUNDS {
        swarm.round(&links.round(round), &data.draw())?;
    }
    let mut error: f64 = 0.0;
    for (agent, expected) in reference.iter().enumerate() {
        let found = data.decisions(&swarm, agent)?.concat();
        error = error.max(distance(found, expected.iter().copied()));
    }
    Ok(Check {
        what: "hyper-cleaning over a faulty channel follows the agents".to_owned(),
        error,
        tolerance: TOLERANCE,
    })
}

fn scenario() -> Scenario {
    let resolved = resolve_for(ScenarioCommand::Train, None, &[]).expect("the defaults are a scenario");
    let mut scenario = resolved.scenario;
    scenario.swarm.agents = AGENTS;
    scenario.algorithm.kind = AlgorithmKind::Ledger;
    scenario.network.phase_rounds = 4;
    let faults = &mut scenario.faults;
    (faults.iid_loss, faults.burst_loss, faults.burst_rounds) = (0.1, 0.2, 4.0);
    (faults.delay_rounds, faults.duplication, faults.reordering) = (3, 0.3, 0.3);
    faults.radio_off = OutageList(vec![Outage { agent: 1, from: 10, rounds: 15 }]);
    scenario
}

/// Final packed decisions of every agent; a local x as it is after its next step, which the batched engine has taken already.
fn reference(data: &ConformanceData<f32>, scenario: &Scenario) -> Vec<Vec<f64>> {
    let mut air = Air::new(scenario).expect("the scenario has an air");
    let mut agents: Vec<_> = (0..AGENTS)
        .map(|id| {
            let problem = data.problem(id, TASK);
            let start = [&vec![0.0; problem.shape().x][..], &data.start, &data.start].concat();
            let config = agent::Config {
                steps: STEPS,
                order: Order::CombineFirst,
                penalty: PENALTY,
                self_weight: scenario.algorithm.usual_self_weight() as f32,
                late_rounds: scenario.late_rounds(),
                ..agent::Config::founder(id as u16, AGENTS as u16)
            };
            Agent::<_, HeapPeers<WORDS>, WORDS>::new(config, problem, &start, HeapPeers::default())
                .expect("the problem fits its agent")
        })
        .collect();
    let mut frame = vec![0; agents[0].largest_frame()];
    for slot in 0..ROUNDS {
        for (sender, agent) in agents.iter_mut().enumerate() {
            while let Ok(Some(length)) = agent.poll_frame(&mut frame) {
                air.transmit(slot, sender, &frame[..length]);
            }
        }
        air.deliver(slot, |receiver, _, bytes| match agents[receiver].receive(Origin::Clear, bytes) {
            Received::Taken => FrameVerdict::Taken,
            _ => FrameVerdict::Useless,
        });
        for agent in &mut agents {
            agent.end_round();
        }
    }
    let after_next_step = |agent: &Agent<_, HeapPeers<WORDS>, WORDS>| {
        let (mut v, x) = (agent.decision().to_vec(), TRAINING);
        for (x, &m) in v.iter_mut().zip(agent.accumulator()).take(x) {
            *x = descended(*x, STEPS.x, m);
        }
        v.into_iter().map(f64::from).collect()
    };
    agents.iter().map(after_next_step).collect()
}
