//! Makes the swarm that a scenario describes, wherever its agents run.

use crate::firmware::{MOST_WORDS, check_sizes};
use crate::fleet::Launcher;
use crate::lock_step::LockStepBoards;
use crate::machine::cable_faults::CableFaults;
use crate::machine::rig::Rig;
use crate::placement::Placement;
use crate::provision::page::PageMaker;
use crate::slots::SlotBoards;
use fabswarm_shared::provisioning::Pace;
use fabswarm_sim::scenario::{PaceKind, Scenario};
use fabswarm_sim::swarm::{AgentSwarm, Swarm, SwarmError};
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
/// # Errors
/// - if `swarm.boards` cannot be parsed or does not fit the swarm;
/// - for the errors of [`trial::build`] and [`trial::exact_agents`];
/// - if the problem or the swarm is too large for boards, or a board does not start.
pub fn build(
    scenario: &Scenario,
    own: Option<&OwnProblem>,
    interrupted: &Arc<AtomicBool>,
) -> Result<Box<dyn Swarm>, SwarmError> {
    let placement: Placement = scenario.swarm.boards.parse()?;
    let locations = placement.locations(scenario.swarm.agents)?;
    if placement.is_in_process() {
        return Ok(trial::build_with(&scenario.clone().in_process(), own)?);
    }
    if scenario.swarm.pace == PaceKind::Slots {
        return Ok(Box::new(SlotBoards::start(scenario, own, &placement, &locations, interrupted)?));
    }
    let parts = trial::exact_agents_with(scenario, own)?;
    let launcher = Launcher {
        pages: PageMaker::new(&parts.task, &parts.setup, Pace::Air, parts.rounds),
        locations: &locations,
        serial_pattern: placement.serial_pattern.as_deref(),
        rig: Rig::of(scenario)?,
        faults: CableFaults::new(scenario),
        radio: None,
        saves_state: &|agent| parts.air.outages().will_remember(agent, 0),
    };
    let mut boards = LockStepBoards::start(&launcher)?;
    boards.fleet.lost_boards = scenario.swarm.lost_boards;
    boards.fleet.interrupted = Arc::clone(interrupted);
    match check_sizes(&parts.task, scenario.swarm.agents)?.words {
        0..=SMALL_WORDS => shadows_of::<SMALL_WORDS>(scenario, parts, boards),
        _ => shadows_of::<MOST_WORDS>(scenario, parts, boards),
    }
}

fn shadows_of<const WORDS: usize>(
    scenario: &Scenario,
    ExactAgents { task, setup, air, .. }: ExactAgents,
    boards: LockStepBoards,
) -> Result<Box<dyn Swarm>, SwarmError> {
    let agents = AgentSwarm::<WORDS>::new(task, air, scenario.swarm.agents, setup);
    Ok(Box::new(agents.map_err(trial::unbuildable)?.with_remote(Box::new(boards))))
}
