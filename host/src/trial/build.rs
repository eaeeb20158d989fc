//! Makes the swarm that a scenario describes.

use fabswarm_shared::fab::Steps;
use fabswarm_shared::graph::{self, Disconnected, Schedule, check_joint_connectivity};
use fabswarm_shared::problem::Penalty;
use fabswarm_shared::scalar::Scalar;

use crate::air::{self, Source};
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
         help: {remedy} or network.connectivity_window (now {})",
        found.from, found.rounds.start, found.rounds.end - 1, found.to, found.rounds.end - found.rounds.start
    )]
    Disconnected {
        /// Who, and when.
        found: Disconnected,
        /// What brings agents together.
        remedy: String,
    },
    /// The graphs cannot be had.
    #[error(transparent)]
    Air(#[from] air::Error),
}

/// Makes the swarm that `scenario` describes.
///
/// # Errors
/// When its network is not connected, or cannot be had.
pub fn build(scenario: &Scenario) -> Result<Box<dyn Swarm>, BuildError> {
    let source = Source::new(scenario)?;
    check_connectivity(scenario, &source)
        .map_err(|found| BuildError::Disconnected { found, remedy: remedy(scenario) })?;
    Ok(match (scenario.algorithm.kind, scenario.swarm.precision) {
        (AlgorithmKind::Fab, Precision::F32) => Box::new(plain_fab::<f32>(scenario, source)),
        (AlgorithmKind::Fab, Precision::F64) => Box::new(plain_fab::<f64>(scenario, source)),
    })
}

fn plain_fab<S: Scalar>(scenario: &Scenario, source: Source) -> PlainFab<S, Source> {
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
    PlainFab::new(Task::draw(scenario), source, constants)
}

/// Checks the windows of the run one after the other, as many as a second or so allows.
fn check_connectivity(scenario: &Scenario, source: &Source) -> Result<(), Disconnected> {
    const MOST_LINKS: f64 = 2e7;
    if source.is_always_connected() {
        return Ok(());
    }
    let (agents, window) = (source.agents() as f64, scenario.network.connectivity_window);
    let share = match source {
        Source::Drawn(_) => scenario.network.edge_probability,
        // Where agents fly every link has to be worked out, whether it exists or not.
        Source::Recorded(_) | Source::Motion(_) => 1.0,
    };
    let links_of_a_window = agents * (1.0 + agents * share) * f64::from(window);
    let affordable = (MOST_LINKS / links_of_a_window).ceil() as u64;
    let windows = (scenario.swarm.rounds / u64::from(window)).clamp(1, affordable.max(1));
    let mut reached = vec![false; source.agents()];
    for index in 0..windows.min(u64::from(u32::MAX / window)) as u32 {
        check_joint_connectivity(source, index * window..(index + 1) * window, &mut reached)?;
    }
    Ok(())
}

fn remedy(scenario: &Scenario) -> String {
    match scenario.network.topology {
        Topology::Motion => format!(
            "lower motion.area_m (now {}), or raise motion.power_dbm (now {})",
            scenario.motion.area_m, scenario.motion.power_dbm
        ),
        Topology::Recorded => "give network.trace other graphs, or raise".to_owned(),
        _ => format!("raise network.edge_probability (now {})", scenario.network.edge_probability),
    }
}
