//! Makes the swarm that a scenario describes, wherever its agents run.

use super::{Boards, Error, Placement, PlacementError};
use fabswarm_shared::ledger::Exact;
use fabswarm_shared::provisioning::BOARD_WORDS;
use fabswarm_sim::scenario::Scenario;
use fabswarm_sim::swarm::{AgentSwarm, Swarm};
use fabswarm_sim::trial::{self, ExactAgents};

/// Why a scenario makes no swarm.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The part of it that is in this process cannot be made.
    #[error(transparent)]
    Trial(#[from] trial::BuildError),
    /// `swarm.boards` cannot be read, or does not fit the swarm.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// Boards do not start.
    #[error(transparent)]
    Boards(#[from] Error),
}

/// Makes the swarm that `scenario` describes, with each agent where `swarm.boards` places it.
///
/// # Errors
/// - [`BuildError::Placement`] where `swarm.boards` cannot be read or does not fit the swarm;
/// - [`BuildError::Trial`] as [`trial::build`] and [`trial::exact_agents`] do;
/// - [`BuildError::Boards`] where the problem or the swarm is too large for boards, or a board does not start.
pub fn build(scenario: &Scenario) -> Result<Box<dyn Swarm>, BuildError> {
    let placement: Placement = scenario.swarm.boards.parse()?;
    let seats = placement.seats(scenario.swarm.agents)?;
    if placement.is_in_process() {
        let mut scenario = scenario.clone();
        scenario.swarm.boards = trial::IN_PROCESS.to_owned();
        return Ok(trial::build(&scenario)?);
    }
    let ExactAgents { task, setup, air, rounds } = trial::exact_agents(scenario)?;
    let boards = Boards::of(&task, &setup, &seats, rounds, |agent| air.will_remember(agent, 0))?;
    let agents = AgentSwarm::<Exact, BOARD_WORDS>::new(task, air, scenario.swarm.agents, setup);
    Ok(Box::new(agents.map_err(trial::BuildError::from)?.with_remote(Box::new(boards))))
}
