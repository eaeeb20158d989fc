//! Makes the swarm that a scenario describes, wherever its agents run.

use crate::firmware::{MOST_WORDS, check_sizes};
use crate::lock_step::LockStepBoards;
use crate::slots::SlotBoards;
use crate::{AgentLocation, Error, Placement};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::scenario::{PaceKind, Scenario};
use fabswarm_sim::sealing::SwarmKey;
use fabswarm_sim::swarm::{AgentSwarm, Remote, Swarm};
use fabswarm_sim::task::OwnProblem;
use fabswarm_sim::trial::{self, ExactAgents};
use std::collections::BTreeSet;
use std::ops::Range;
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
    shadows(scenario, parts, Box::new(boards))
}

/// Makes the swarm that `scenario` describes, with boards that other hosts start: `find` gets their agents and the key that they seal
/// frames with.
///
/// # Errors
/// - as [`build`];
/// - if no agent runs on a board, or boards keep their own time;
/// - [`Error::OtherHosts`] for those of `find`.
pub fn build_shadows(
    scenario: &Scenario,
    own: Option<&OwnProblem>,
    find: impl FnOnce(
        BTreeSet<usize>,
        Option<&SwarmKey>,
    ) -> Result<Box<dyn Remote>, Box<dyn std::error::Error + Send + Sync>>,
) -> Result<Box<dyn Swarm>, Error> {
    let (_, locations) = placed(scenario)?;
    let is_remote = |agent: &usize| locations[*agent] != AgentLocation::InProcess;
    let remote: BTreeSet<usize> = (0..scenario.swarm.agents).filter(is_remote).collect();
    if remote.is_empty() {
        return Err(Diagnostic::new(
            "other hosts run boards, and swarm.boards places no agent on one",
            "place some, as `--boards native` does, or run the swarm on one host",
        )
        .into());
    }
    let parts = trial::exact_agents_with(scenario, own)?;
    check_sizes(&parts.task, scenario.swarm.agents)?;
    let boards = find(remote, parts.setup.key.as_ref()).map_err(Error::OtherHosts)?;
    shadows(scenario, parts, boards)
}

/// Starts the boards of the agents in `block`, for shadows that another process has with this key.
///
/// # Errors
/// As [`build_shadows`].
pub fn start_block(
    scenario: &Scenario,
    key: Option<SwarmKey>,
    block: Range<usize>,
    interrupted: &Arc<AtomicBool>,
) -> Result<Box<dyn Remote>, Error> {
    let (placement, mut locations) = placed(scenario)?;
    for (agent, location) in locations.iter_mut().enumerate() {
        if !block.contains(&agent) {
            *location = AgentLocation::InProcess;
        }
    }
    let mut parts = trial::exact_agents(scenario)?;
    parts.setup.key = key;
    Ok(Box::new(start(scenario, &parts, &locations, &placement, interrupted)?))
}

/// The locations of agents whose boards and shadows are in different processes.
fn placed(scenario: &Scenario) -> Result<(Placement, Vec<AgentLocation>), Error> {
    let placement: Placement = scenario.swarm.boards.parse()?;
    let locations = placement.locations(scenario.swarm.agents)?;
    if scenario.swarm.pace == PaceKind::Slots {
        return Err(Diagnostic::new(
            "boards on several hosts follow the air, and swarm.pace = \"slots\" lets them keep their own time",
            "set swarm.pace to \"air\", or run the swarm on one host",
        )
        .into());
    }
    Ok((placement, locations))
}

fn start(
    scenario: &Scenario,
    ExactAgents { task, setup, air, rounds }: &ExactAgents,
    locations: &[AgentLocation],
    placement: &Placement,
    interrupted: &Arc<AtomicBool>,
) -> Result<LockStepBoards, Error> {
    let will_remember = |agent| air.will_remember(agent, 0);
    let pattern = placement.serial_pattern.as_deref();
    let mut boards = LockStepBoards::start(task, setup, locations, *rounds, will_remember, pattern)?;
    boards.fleet.lost_boards = scenario.swarm.lost_boards;
    boards.fleet.interrupted = Arc::clone(interrupted);
    Ok(boards)
}

fn shadows(
    scenario: &Scenario,
    parts: ExactAgents,
    boards: Box<dyn Remote>,
) -> Result<Box<dyn Swarm>, Error> {
    match check_sizes(&parts.task, scenario.swarm.agents)?.words {
        0..=SMALL_WORDS => shadows_of::<SMALL_WORDS>(scenario, parts, boards),
        _ => shadows_of::<MOST_WORDS>(scenario, parts, boards),
    }
}

fn shadows_of<const WORDS: usize>(
    scenario: &Scenario,
    ExactAgents { task, setup, air, .. }: ExactAgents,
    boards: Box<dyn Remote>,
) -> Result<Box<dyn Swarm>, Error> {
    let agents = AgentSwarm::<WORDS>::new(task, air, scenario.swarm.agents, setup);
    Ok(Box::new(agents.map_err(trial::unbuildable)?.with_remote(boards)))
}
