//! Makes the swarm that a scenario describes, wherever its agents run.

use super::flight::{Flight, FlightError};
use super::{AgentLocation, Boards, Error, MOST_WORDS, Placement, PlacementError};
use fabswarm_shared::ledger::Exact;
use fabswarm_sim::scenario::{PaceKind, Scenario};
use fabswarm_sim::swarm::{AgentSwarm, Swarm};
use fabswarm_sim::task::OwnProblem;
use fabswarm_sim::trial::{self, ExactAgents};
use std::sync::{Arc, atomic::AtomicBool};

/// Words of the shadows of most problems.
const SMALL_WORDS: usize = 64;

/// Why no swarm can be made from a scenario.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoardSwarmError {
    /// The part in this process cannot be made.
    #[error(transparent)]
    Trial(#[from] trial::BuildError),
    /// `swarm.boards` cannot be parsed, or does not fit the swarm.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// A board does not start.
    #[error(transparent)]
    Boards(#[from] Error),
    /// Boards that keep their own time cannot begin.
    #[error(transparent)]
    Flight(#[from] FlightError),
}

/// Makes the swarm that `scenario` describes, with each agent where `swarm.boards` places it.
///
/// Once `interrupted` is set, a step that waits for boards that do not answer returns [`SwarmError::Interrupted`].
///
/// [`SwarmError::Interrupted`]: fabswarm_sim::swarm::SwarmError::Interrupted
///
/// # Errors
/// - [`BoardSwarmError::Placement`] if `swarm.boards` cannot be parsed or does not fit the swarm;
/// - [`BoardSwarmError::Trial`] for the errors of [`trial::build`] and [`trial::exact_agents`];
/// - [`BoardSwarmError::Boards`] if the problem or the swarm is too large for boards, or a board does not start.
pub fn build(scenario: &Scenario, interrupted: &Arc<AtomicBool>) -> Result<Box<dyn Swarm>, BoardSwarmError> {
    build_with(scenario, None, interrupted)
}

/// As [`build`], in a program that may bring a problem of its own.
///
/// # Errors
/// As there.
pub fn build_with(
    scenario: &Scenario,
    own: Option<&OwnProblem>,
    interrupted: &Arc<AtomicBool>,
) -> Result<Box<dyn Swarm>, BoardSwarmError> {
    let placement: Placement = scenario.swarm.boards.parse()?;
    let locations = placement.locations(scenario.swarm.agents)?;
    if scenario.swarm.pace == PaceKind::Slots && !placement.is_in_process() {
        return Ok(Box::new(Flight::start(scenario, own, &locations, interrupted)?));
    }
    if placement.is_in_process() {
        let mut scenario = scenario.clone();
        scenario.swarm.boards = trial::IN_PROCESS.to_owned();
        return Ok(trial::build_with(&scenario, own)?);
    }
    let parts = trial::exact_agents_with(scenario, own)?;
    match super::check_sizes(&parts.task, scenario.swarm.agents)?.words {
        0..=SMALL_WORDS => with_boards::<SMALL_WORDS>(scenario, parts, &locations, &placement, interrupted),
        _ => with_boards::<MOST_WORDS>(scenario, parts, &locations, &placement, interrupted),
    }
}

/// Starts the boards, and the shadows of all agents.
fn with_boards<const WORDS: usize>(
    scenario: &Scenario,
    parts: ExactAgents,
    locations: &[AgentLocation],
    placement: &Placement,
    interrupted: &Arc<AtomicBool>,
) -> Result<Box<dyn Swarm>, BoardSwarmError> {
    let ExactAgents { task, setup, air, rounds } = parts;
    let boards = Boards::start(
        &task,
        &setup,
        locations,
        rounds,
        |agent| air.will_remember(agent, 0),
        placement.serial_pattern(),
    )?
    .with_lost_boards(scenario.swarm.lost_boards)
    .with_interrupt(Arc::clone(interrupted));
    let agents = AgentSwarm::<Exact, WORDS>::new(task, air, scenario.swarm.agents, setup);
    Ok(Box::new(agents.map_err(trial::BuildError::from)?.with_remote(Box::new(boards))))
}
