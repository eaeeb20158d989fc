//! Whole swarms in this process.

mod attacks;
mod convergence;
mod golden;
mod intruder;
mod properties;
mod rings;
mod scenarios;

use fabswarm_sim::scenario::{
    AlgorithmSection, OrderKind, PenaltyKind, Scenario, ScenarioCommand, resolve_text_for,
};
use fabswarm_sim::swarm::{AgentSwarm, Swarm};
use fabswarm_sim::trial::{ExactAgents, exact_agents};
use std::path::Path;

type Agents = AgentSwarm<64>;

/// The scenario of a file with these lines.
fn scenario(lines: &str) -> Scenario {
    let text = format!("version = 1\n{lines}");
    let file = Some((Path::new("scenario.toml"), text.as_str()));
    resolve_text_for(ScenarioCommand::Run, file, &[]).unwrap_or_else(|error| panic!("{error}")).scenario
}

/// FAB as published, with steps that any graph bears.
fn publish(algorithm: &mut AlgorithmSection) {
    (algorithm.eta_x, algorithm.eta_y, algorithm.eta_z) = (0.6, 0.06, 0.06);
    (algorithm.order, algorithm.penalty) = (OrderKind::CombineFirst, PenaltyKind::OneSided);
    algorithm.momentum = 0.0;
}

fn agents(scenario: &Scenario) -> Agents {
    let ExactAgents { task, setup, air, .. } = exact_agents(scenario).unwrap();
    AgentSwarm::new(task, air, scenario.swarm.agents, setup).unwrap()
}

/// Steps through `rounds` rounds, in each of which the books are checked.
fn run(swarm: &mut Agents, rounds: u32) {
    for _ in 0..rounds {
        swarm.step().unwrap_or_else(|error| panic!("{error}"));
    }
}

/// How far the x of any of the first `count` agents is from that of the other swarm, relative.
fn distance(swarm: &Agents, other: &Agents, count: usize) -> f32 {
    let norm = |words: &mut dyn Iterator<Item = f32>| words.map(|word| word * word).sum::<f32>().sqrt();
    let gap = |(own, best): (&[f32], &[f32])| {
        norm(&mut own.iter().zip(best).map(|(a, b)| a - b)) / norm(&mut best.iter().copied())
    };
    let x = 5;
    let pairs = swarm.agents().zip(other.agents()).take(count);
    pairs.map(|(own, other)| gap((&own.decision()[..x], &other.decision()[..x]))).fold(0.0, f32::max)
}
