//! Makes the swarm that a scenario describes, wherever its agents run.

use crate::firmware::{MOST_WORDS, check_sizes};
use crate::lock_step::LockStepBoards;
use crate::machine::cable_faults::CableFaults;
use crate::machine::rig::Rig;
use crate::slots::SlotBoards;
use crate::{AgentLocation, Error, Placement};
use fabswarm_sim::scenario::{PaceKind, Scenario};
use fabswarm_sim::swarm::{AgentSwarm, Swarm};
use fabswarm_sim::task::OwnProblem;
use fabswarm_sim::trial::{self, ExactAgents};
use std::sync::{Arc, atomic::AtomicBool};

/// Words of the shadows of most problems.
const SMALL_WORDS: usize = 64;

/// Makes the swarm that `scenario` describes, with each agent where `swarm.boards` places it. A program may bring a problem of its
/// own.
///
/// Once `interrupted` is set, a step that waits for boards that do not answer returns [`SwarmError::Interrupted`].
///
/// [`SwarmError::Interrupted`]: fabswarm_sim::swarm::SwarmError::Interrupted
///
/// # Errors
/// - if `swarm.boards` cannot be parsed or does not fit the swarm;
/// - for the errors of [`trial::build`] and [`trial::exact_agents`];
/// - if the problem or the swarm is too large for boards, or a board does not start.
pub fn build(
    scenario: &Scenario,
    own: Option<&OwnProblem>,
    interrupted: &Arc<AtomicBool>,
) -> Result<Box<dyn Swarm>, Error> {
    let placement: Placement = scenario.swarm.boards.parse()?;
    let locations = placement.locations(scenario.swarm.agents)?;
    if scenario.swarm.pace == PaceKind::Slots && !placement.is_in_process() {
        return Ok(Box::new(SlotBoards::start(scenario, own, &placement, &locations, interrupted)?));
    }
    if placement.is_in_process() {
        return Ok(trial::build_with(&scenario.clone().in_process(), own)?);
    }
    let parts = trial::exact_agents_with(scenario, own)?;
    let boards = start(scenario, &parts, &locations, &placement, interrupted)?;
    match check_sizes(&parts.task, scenario.swarm.agents)?.words {
        0..=SMALL_WORDS => shadows_of::<SMALL_WORDS>(scenario, parts, boards),
        _ => shadows_of::<MOST_WORDS>(scenario, parts, boards),
    }
}

fn start(
    scenario: &Scenario,
    ExactAgents { task, setup, air, rounds }: &ExactAgents,
    locations: &[AgentLocation],
    placement: &Placement,
    interrupted: &Arc<AtomicBool>,
) -> Result<LockStepBoards, Error> {
    let will_remember = |agent| air.outages().will_remember(agent, 0);
    let pattern = placement.serial_pattern.as_deref();
    let rig = Rig::of(scenario)?;
    let cable = (rig.as_ref(), CableFaults::new(scenario));
    let mut boards = LockStepBoards::start(task, setup, locations, *rounds, will_remember, pattern, cable)?;
    boards.fleet.lost_boards = scenario.swarm.lost_boards;
    boards.fleet.interrupted = Arc::clone(interrupted);
    Ok(boards)
}

fn shadows_of<const WORDS: usize>(
    scenario: &Scenario,
    ExactAgents { task, setup, air, .. }: ExactAgents,
    boards: LockStepBoards,
) -> Result<Box<dyn Swarm>, Error> {
    let agents = AgentSwarm::<WORDS>::new(task, air, scenario.swarm.agents, setup);
    Ok(Box::new(agents.map_err(trial::unbuildable)?.with_remote(Box::new(boards))))
}
