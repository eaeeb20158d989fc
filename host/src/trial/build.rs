//! Makes the swarm that a scenario describes.

use fabswarm_shared::agent::{Config, Mode};
use fabswarm_shared::fab::Steps;
use fabswarm_shared::graph::{self, Disconnected, Graph, check_joint_connectivity};
use fabswarm_shared::problem::Penalty;
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::scalar::Scalar;
use fabswarm_shared::wire::payload::Width;

use crate::attach::{self, Crew, LossyLinks, Placement, PlacementError, Plan};
use crate::scenario::{AlgorithmKind, Precision, Scenario, Topology, Weights};
use crate::swarm::{Constants, Mixing, PlainFab, Swarm};
use crate::task::Task;

/// Why a scenario makes no swarm.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Some agents never hear of others.
    #[error(
        "the network is not connected: nothing that agent {} says in rounds {} to {} reaches agent {}\n\
         help: raise network.edge_probability (now {edge_probability}) or network.connectivity_window (now {})",
        found.from, found.rounds.start, found.rounds.end - 1, found.to, found.rounds.end - found.rounds.start
    )]
    Disconnected {
        /// Who, and when.
        found: Disconnected,
        /// The probability that was too low.
        edge_probability: f64,
    },
    /// Agents cannot be seated as asked.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// Boards compute in single precision.
    #[error("boards = \"{boards}\" needs precision = \"f32\": microcontrollers have no other")]
    Precision {
        /// Where agents were to run.
        boards: String,
    },
    /// Boards do not start.
    #[error(transparent)]
    Boards(#[from] attach::Error),
}

/// Makes the swarm that `scenario` describes.
///
/// # Errors
/// When its network is not connected, or its boards do not start.
pub fn build(scenario: &Scenario) -> Result<Box<dyn Swarm>, BuildError> {
    let network = &scenario.network;
    let edge_probability = network.edge_probability;
    let topology = match network.topology {
        Topology::Paper => graph::Topology::Paper { edge_probability, phase_rounds: network.phase_rounds },
        Topology::Ring => graph::Topology::Ring,
        Topology::ReversedRing => graph::Topology::ReversedRing,
        Topology::ErdosRenyi => graph::Topology::ErdosRenyi { edge_probability },
        Topology::Complete => graph::Topology::Complete,
    };
    let graph = Graph { topology, agents: scenario.swarm.agents, seed: scenario.seed };
    check_connectivity(scenario, &graph)
        .map_err(|found| BuildError::Disconnected { found, edge_probability })?;
    let placement: Placement = scenario.swarm.boards.parse()?;
    if !placement.is_in_process() {
        return Ok(Box::new(crew(scenario, graph, &placement)?));
    }
    Ok(match (scenario.algorithm.kind, scenario.swarm.precision) {
        (AlgorithmKind::Fab, Precision::F32) => Box::new(plain_fab::<f32>(scenario, graph)),
        (AlgorithmKind::Fab, Precision::F64) => Box::new(plain_fab::<f64>(scenario, graph)),
    })
}

/// Agents with a ledger, some of them on boards.
fn crew(scenario: &Scenario, graph: Graph, placement: &Placement) -> Result<Crew<LossyLinks<Graph>>, BuildError> {
    if scenario.swarm.precision != Precision::F32 {
        return Err(BuildError::Precision { boards: placement.to_string() });
    }
    let algorithm = &scenario.algorithm;
    let mut draw = Stream::new(scenario.seed, u32::MAX, 0, Purpose::Air);
    let plan = Plan {
        seats: placement.seats(scenario.swarm.agents)?,
        config: Config {
            id: 0,
            founders: 0,
            mode: Mode::LockStep,
            steps: Steps {
                x: algorithm.eta_x as f32,
                y: algorithm.eta_y as f32,
                z: algorithm.eta_z as f32,
            },
            penalty: Penalty { lambda: algorithm.lambda as f32, normalise: algorithm.normalise_by_lambda },
            self_weight: algorithm.self_weight as f32,
            audience: 0,
            width: Width::Full,
            give_up_after: 0,
            boot: 1,
            build: 0,
        },
        key: std::array::from_fn(|_| draw.next_u32() as u8),
        schedule: graph,
        rounds: u32::try_from(scenario.swarm.rounds).unwrap_or(u32::MAX),
        saves_state: true,
    };
    let air = LossyLinks { schedule: graph, loss: 0.0, seed: scenario.seed };
    Ok(Crew::assemble(Task::draw(scenario), &plan, air)?)
}

fn plain_fab<S: Scalar>(scenario: &Scenario, graph: Graph) -> PlainFab<S, Graph> {
    let algorithm = &scenario.algorithm;
    let weights = match algorithm.weights {
        Weights::Uniform => graph::Weights::Uniform,
        Weights::Lazy => graph::Weights::LazyPush { self_weight: algorithm.self_weight },
    };
    let constants = Constants {
        steps: Steps {
            x: S::from_f64(algorithm.eta_x),
            y: S::from_f64(algorithm.eta_y),
            z: S::from_f64(algorithm.eta_z),
        },
        penalty: Penalty { lambda: S::from_f64(algorithm.lambda), normalise: algorithm.normalise_by_lambda },
        mixing: Mixing::Degrees(weights),
    };
    PlainFab::new(Task::draw(scenario), graph, constants)
}

/// Checks the windows of the run one after the other, as many as a second or so allows.
fn check_connectivity(scenario: &Scenario, graph: &Graph) -> Result<(), Disconnected> {
    const MOST_LINKS: f64 = 2e7;
    if graph.topology.is_always_connected() {
        return Ok(());
    }
    let (agents, window) = (graph.agents as f64, scenario.network.connectivity_window);
    let links_of_a_window = agents * (1.0 + agents * scenario.network.edge_probability) * f64::from(window);
    let affordable = (MOST_LINKS / links_of_a_window).ceil() as u64;
    let windows = (scenario.swarm.rounds / u64::from(window)).clamp(1, affordable.max(1));
    let mut reached = vec![false; graph.agents];
    for index in 0..windows.min(u64::from(u32::MAX / window)) as u32 {
        check_joint_connectivity(graph, index * window..(index + 1) * window, &mut reached)?;
    }
    Ok(())
}
