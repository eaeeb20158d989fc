//! Agents on a simulated radio: their own clocks, packets that take time, reach some agents and not others, and collide.

mod channel;
mod clock;
mod intruder;
mod places;
mod simulation;
mod slots;

use fabswarm_shared::agent::{Agent, Origin};
use fabswarm_sim::air::radio::{RadioConfig, RadioKind};
use fabswarm_sim::scenario::{Scenario, TopologyKind};
use fabswarm_sim::swarm::{AgentProblem, AgentSwarmConfig, HeapPeers};
use fabswarm_sim::task::Task;
use fabswarm_sim::trial::{self, ExactAgents};
use places::BENCH;
use simulation::{RadioAir, RadioEvent, RadioSwarmConfig};
use std::sync::Arc;

const WORDS: usize = 45;
const AGENTS: usize = 20;

type RadioAgent = Agent<AgentProblem, HeapPeers<WORDS>, WORDS>;

/// A task, and all that its agents have in common.
struct SharedTask {
    task: Arc<Task<f32>>,
    setup: AgentSwarmConfig,
    start: Vec<f32>,
}

impl SharedTask {
    fn new(scenario: &Scenario) -> Self {
        let ExactAgents { task, setup, .. } = trial::exact_agents(scenario).unwrap();
        Self { start: task.start(), task: Arc::new(task), setup }
    }

    fn agent(&self, id: usize, boot: u32) -> RadioAgent {
        let problem = AgentProblem::new(Arc::clone(&self.task), id);
        Agent::new(self.setup.config_of(id, boot), problem, &self.start, HeapPeers::default()).unwrap()
    }
}

/// Twenty agents with clocks of ±40 ppm solve the default problem, although every fifth packet is lost, and with it a frame of four.
#[test]
fn agents_converge_by_their_own_clocks() {
    let mut scenario = Scenario::default();
    scenario.swarm.agents = AGENTS;
    scenario.network.topology = TopologyKind::Complete;
    let task = SharedTask::new(&scenario);
    let mut agents: Vec<RadioAgent> = (0..AGENTS).map(|id| task.agent(id, 1)).collect();

    let needs = RadioConfig { agents: AGENTS as u16, frame_bytes: 385, ..RadioConfig::default() };
    let settings = RadioSwarmConfig::new(RadioKind::Ieee802154, &needs, BENCH);
    let period = settings.period_s();
    let mut air = RadioAir::all_on(RadioSwarmConfig { seed: 3, loss: 0.2, ..settings });
    let solution = task.task.solution().unwrap().to_vec();
    let norm = solution.iter().map(|word| word * word).sum::<f64>().sqrt();
    let mut frames = vec![Vec::new(); AGENTS];
    let mut buffer = vec![0; agents[0].largest_frame()];
    let error = |agents: &[RadioAgent]| {
        let distance = |agent: &RadioAgent| {
            let squares =
                agent.decision().iter().zip(&solution).map(|(&x, &best)| (f64::from(x) - best).powi(2));
            squares.sum::<f64>().sqrt()
        };
        agents.iter().map(distance).sum::<f64>() / agents.len() as f64 / norm
    };
    let mut rounds = 0;
    while error(&agents) > 0.01 {
        assert!(rounds < 4000, "error {} after {rounds} rounds", error(&agents));
        rounds += 20;
        air.run_until(air.seconds() + 20.0 * period, |event| match event {
            RadioEvent::Sent { agent, .. } => {
                while let Ok(Some(length)) = agents[agent].poll_frame(&mut buffer) {
                    frames[agent] = buffer[..length].to_vec();
                }
            }
            RadioEvent::Delivered { sender, receiver } => {
                let _ = agents[receiver].receive(Origin::Clear, &frames[sender]);
            }
            RadioEvent::RoundEnded { agent } => {
                assert_eq!(agents[agent].end_on_beat().fault, None);
            }
        });
    }
    eprintln!("{rounds} rounds, {:.0} s", air.seconds());
    assert_eq!(air.counts().collisions, 0, "all were switched on at once and hear the lowest first");
}
