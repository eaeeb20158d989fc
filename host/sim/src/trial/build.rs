//! Makes the swarm that a scenario describes.

use std::rc::Rc;

use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::agent::{self, MemberSet};
use fabswarm_shared::fab::{Order, Phases, Steps};
use fabswarm_shared::graph;
use fabswarm_shared::problem::{Penalty, PenaltyForm, Problem};
use fabswarm_shared::scalar::Scalar;
use fabswarm_shared::wire::payload;

use super::{baseline, memory, phases};
use crate::air::{Air, LinkSource};
use crate::scenario::{
    AlgorithmKind, FlightPattern, ModeKind, OrderKind, PaceKind, PenaltyKind, PrecisionKind, ProblemKind,
    Scenario, TopologyKind, WeightsKind, WidthKind,
};
use crate::sealing::SwarmKey;
use crate::swarm::{
    AgentSwarm, AgentSwarmConfig, ArrayFab, ArrayFabConfig, ArrayLedger, FaultyAirFab, MethodSwarm,
    MixingRule, RAISE_LAMBDA, RoundMethod, Swarm,
};
use crate::task::{OwnProblem, Task};

/// Why the swarm of a scenario cannot be built.
pub type BuildError = Diagnostic;

/// Makes the swarm that `scenario` describes, with all agents in this process.
///
/// # Errors
/// Where
/// - `swarm.boards` places agents elsewhere;
/// - it does not fit into memory;
/// - two keys exclude each other, or the problem has more than one solution;
/// - the graphs cannot be read, or do not connect the swarm;
/// - frames are sealed and the operating system has no random numbers;
/// - an agent cannot be made from its share of the problem;
/// - the first gradient is out of range already.
pub fn build(scenario: &Scenario) -> Result<Box<dyn Swarm>, BuildError> {
    build_with(scenario, None)
}

/// As [`build`], in a program that may bring a problem of its own.
pub fn build_with(scenario: &Scenario, own: Option<&OwnProblem>) -> Result<Box<dyn Swarm>, BuildError> {
    if scenario.swarm.boards != crate::scenario::IN_PROCESS {
        return Err(Diagnostic::new(
            format!(
                "swarm.boards = \"{}\" needs boards, and this build of fabswarm has none",
                scenario.swarm.boards
            ),
            "build it with its feature `boards`, or set swarm.boards to \"in-process\"",
        ));
    }
    if scenario.swarm.pace == PaceKind::Slots {
        return Err(Diagnostic::new(
            "agents in this process keep no time of their own, as swarm.pace = \"slots\" asks for",
            "set swarm.boards to \"qemu\" or \"native\", or swarm.pace to \"air\"",
        ));
    }
    let mut source = checked_source(scenario)?;
    if !scenario.algorithm.kind.is_fab() {
        let make = |task: &_| baseline::make(scenario, task, weights(scenario), penalty(scenario));
        return Ok(Box::new(baseline::swarm_with(scenario, own, make)?));
    }
    let is_large = scenario.swarm.agents > MemberSet::CAPACITY;
    match (scenario.algorithm.kind, scenario.swarm.precision) {
        (AlgorithmKind::Fab, _) if scenario.swarm.mode == ModeKind::FreeRunning => Err(Diagnostic::new(
            "plain FAB has no agents with clocks of their own",
            "set algorithm.kind to \"ledger\", or swarm.mode to \"lock-step\"",
        )),
        (AlgorithmKind::Fab, PrecisionKind::F32) => {
            plain_fab(scenario, source, Task::<f32>::load_with(scenario, own)?)
        }
        (AlgorithmKind::Fab, PrecisionKind::F64) => {
            plain_fab(scenario, source, Task::<f64>::load_with(scenario, own)?)
        }
        (_, PrecisionKind::F64) => Err(Diagnostic::new(
            "the ledger's agents compute in f32, as boards do",
            "set swarm.precision to \"f32\", or algorithm.kind to \"fab\"",
        )),
        (_, PrecisionKind::F32) => {
            let task = Task::<f32>::load_with(scenario, own)?;
            if is_large {
                ledger_on_arrays(scenario, source, task)
            } else {
                simulated_agents(scenario, &mut source, task)
            }
        }
    }
}

/// As [`build_with`], with the method that `make` makes for the problem of all agents.
pub fn build_with_method(
    scenario: &Scenario,
    own: Option<&OwnProblem>,
    make: impl FnOnce(&Rc<Task<f64>>) -> Result<Box<dyn RoundMethod>, BuildError>,
) -> Result<Box<dyn Swarm>, BuildError> {
    checked_source(scenario)?;
    Ok(Box::new(baseline::swarm_with(scenario, own, make)?))
}

type Built = Result<Box<dyn Swarm>, BuildError>;

/// Whether the task has one solution, before any of it is drawn.
fn check_task(scenario: &Scenario) -> Result<(), BuildError> {
    let task = &scenario.policy_evaluation;
    let is_policy_evaluation = scenario.problem.kind == ProblemKind::PolicyEvaluation;
    let algorithm = &scenario.algorithm;
    let curvature = task.lower_weight - task.upper_weight / algorithm.lambda;
    if is_policy_evaluation && algorithm.penalty == PenaltyKind::Symmetric && curvature <= 0.0 {
        return Err(Diagnostic::new(
            format!("g - f/lambda has no minimum: its curvature in y is {curvature:.2}"),
            RAISE_LAMBDA,
        ));
    }
    let is_drawn = is_policy_evaluation && task.file.is_empty();
    if is_drawn && task.regularisation == 0.0 && task.features > task.states {
        return Err(Diagnostic::new(
            "more features than states leave more than one solution",
            "set policy_evaluation.regularisation above 0, or lower policy_evaluation.features",
        ));
    }
    Ok(())
}

fn plain_fab<S: Scalar>(scenario: &Scenario, source: LinkSource, task: Task<S>) -> Built {
    let constants = ArrayFabConfig::<S> {
        steps: steps(scenario),
        order: order(scenario),
        penalty: penalty(scenario),
        mixing: MixingRule::Degrees(weights(scenario)),
    };
    if scenario.has_perfect_air() {
        return Ok(Box::new(ArrayFab::new(task, source, constants)));
    }
    let (task, most_late, x_step) = (Rc::new(task), scenario.faults.delay_rounds, constants.steps.x);
    let method = FaultyAirFab::new(Rc::clone(&task), scenario.swarm.agents, constants, most_late);
    Ok(Box::new(MethodSwarm::new(task, Air::new(scenario)?, Box::new(method), most_late, x_step)))
}

/// A swarm too large to simulate agent by agent: the same numbers on arrays, without faults.
fn ledger_on_arrays(scenario: &Scenario, mut source: LinkSource, task: Task<f32>) -> Built {
    let has_plain_frames = scenario.frames.width == WidthKind::Full;
    let is_ring = is_ring(scenario);
    let has_own_audiences = !is_ring && audiences(scenario, &mut source).is_some();
    let is_free_running = scenario.swarm.mode == ModeKind::FreeRunning;
    if !scenario.has_perfect_air() || !has_plain_frames || is_free_running || has_own_audiences {
        return Err(Diagnostic::new(
            "faults, narrow frames, free-running clocks and links that never come up are simulated agent by agent, \
                   for at most 1024 agents",
            "lower swarm.agents, or set these keys back to their defaults",
        ));
    }
    let others = scenario.swarm.agents.saturating_sub(1) as u32;
    let audience = if is_ring { others.min(1) } else { others };
    Ok(Box::new(ArrayLedger::new(task, source, setup(scenario)?.config, audience)?))
}

/// Agents that exchange frames over the air.
fn simulated_agents(scenario: &Scenario, source: &mut LinkSource, task: Task<f32>) -> Built {
    let setup = setup_on(scenario, source)?;
    let needed = (0..scenario.swarm.agents)
        .map(|agent| task.problem(agent))
        .map(|problem| problem.shape().words().max(problem.scratch_words()))
        .max()
        .unwrap_or(0);
    match needed {
        0..=64 => agents_of::<64>(scenario, task, setup),
        65..=512 => agents_of::<512>(scenario, task, setup),
        513..=4096 => agents_of::<4096>(scenario, task, setup),
        _ => Err(Diagnostic::new(
            "agents of a ledger hold decisions of up to 4096 scalars",
            "lower the sizes of the problem, or set algorithm.kind to \"fab\"",
        )),
    }
}

fn agents_of<const WORDS: usize>(scenario: &Scenario, task: Task<f32>, setup: AgentSwarmConfig) -> Built {
    let swarm = AgentSwarm::<WORDS>::new(task, Air::new(scenario)?, scenario.swarm.agents, setup);
    Ok(Box::new(swarm.map_err(unbuildable)?))
}

/// The error for an agent that cannot be built.
pub fn unbuildable(error: agent::Error) -> BuildError {
    Diagnostic::new(
        format!("an agent cannot be built: {error}"),
        "lower the sizes or the scale of the problem, or algorithm.lambda",
    )
}

/// The parts of a swarm of exact agents, for a caller that places some of them on boards.
#[derive(Debug)]
pub struct ExactAgents {
    /// The problem of every agent.
    pub task: Task<f32>,
    /// The configuration of the agents.
    pub setup: AgentSwarmConfig,
    /// The air that carries their frames.
    pub air: Air,
    /// Rounds after which a board stops by itself.
    pub rounds: u32,
}

/// Makes the parts of a swarm whose agents may run on boards, wherever `swarm.boards` places them.
///
/// # Errors
/// As [`build`]; and where the scenario asks for other agents than boards run.
pub fn exact_agents(scenario: &Scenario) -> Result<ExactAgents, BuildError> {
    exact_agents_with(scenario, None)
}

/// As [`exact_agents`], in a program that may bring a problem of its own.
pub fn exact_agents_with(scenario: &Scenario, own: Option<&OwnProblem>) -> Result<ExactAgents, BuildError> {
    let mut source = checked_source(scenario)?;
    let swarm = &scenario.swarm;
    let is_exact = scenario.algorithm.kind == AlgorithmKind::Ledger && swarm.precision == PrecisionKind::F32;
    if !is_exact {
        return Err(Diagnostic::new(
            "boards run the exact ledger in f32",
            "set algorithm.kind to \"ledger\" and swarm.precision to \"f32\", or swarm.boards to \"in-process\"",
        ));
    }
    if swarm.pace == PaceKind::Slots && swarm.mode == ModeKind::FreeRunning {
        return Err(Diagnostic::new(
            "slots end the rounds of all agents at once",
            "set swarm.mode to \"lock-step\", or swarm.pace to \"air\"",
        ));
    }
    Ok(ExactAgents {
        task: Task::<f32>::load_with(scenario, own)?,
        setup: setup_on(scenario, &mut source)?,
        air: Air::new(scenario)?,
        // Rounds of a free-running swarm are the air's, and a fast clock makes more of its own: boards go on until stopped.
        rounds: match swarm.mode {
            ModeKind::LockStep => u32::try_from(swarm.rounds).unwrap_or(u32::MAX),
            ModeKind::FreeRunning => u32::MAX,
        },
    })
}

/// The graphs of `scenario`, once the swarm is known to fit into memory, to have one solution and to be connected.
fn checked_source(scenario: &Scenario) -> Result<LinkSource, BuildError> {
    memory::check(scenario)?;
    check_task(scenario)?;
    let mut source = LinkSource::new(scenario)?;
    source.check_connectivity(scenario)?;
    Ok(source)
}

/// The configuration of the agents of `scenario` over the links of `source`.
fn setup_on(scenario: &Scenario, source: &mut LinkSource) -> Result<AgentSwarmConfig, Diagnostic> {
    let setup = setup(scenario)?;
    let Some(audiences) = audiences(scenario, source) else { return Ok(setup) };
    let sizes: Vec<u32> = audiences.iter().map(MemberSet::len).collect();
    let config = match phases::phases(scenario, source, &sizes) {
        Phases::TOGETHER => {
            let self_weight = phases::self_weight(scenario, source, &sizes) as f32;
            agent::Config { self_weight, ..setup.config }
        }
        phases => in_phases(setup.config, phases),
    };
    Ok(AgentSwarmConfig { config, audiences: Some(audiences), ..setup })
}

/// Agents that work in `phases`.
fn in_phases(config: agent::Config, phases: Phases) -> agent::Config {
    match phases {
        Phases::TOGETHER => config,
        phases => agent::Config { phases, self_weight: phases::SELF_WEIGHT as f32, ..config },
    }
}

/// The configuration of the agents of `scenario`, without what follows from its graph. Sealed swarms get a new key each time.
///
/// # Errors
/// If the key cannot be drawn.
pub fn setup(scenario: &Scenario) -> Result<AgentSwarmConfig, Diagnostic> {
    let config = in_phases(config(scenario), phases::chosen_phases(scenario));
    Ok(AgentSwarmConfig {
        config,
        audiences: None,
        key: scenario.frames.sealed.then(SwarmKey::draw).transpose()?,
        clock_spread: scenario.swarm.clock_spread,
        forged_fragments: scenario.intruder.forged_fragments,
        seed: scenario.network_seed(),
    })
}

fn config(scenario: &Scenario) -> agent::Config {
    agent::Config {
        mode: match scenario.swarm.mode {
            ModeKind::LockStep => agent::Mode::LockStep,
            ModeKind::FreeRunning => agent::Mode::FreeRunning,
        },
        steps: steps(scenario),
        order: order(scenario),
        penalty: penalty(scenario),
        self_weight: scenario.algorithm.usual_self_weight() as f32,
        width: match scenario.frames.width {
            WidthKind::Full => payload::Width::Full,
            WidthKind::Half => payload::Width::Half,
            WidthKind::Byte => payload::Width::Byte,
        },
        give_up_after: scenario.give_up_after(),
        late_rounds: scenario.late_rounds(),
        send_threshold: scenario.frames.send_threshold as f32,
        ..agent::Config::founder(0, scenario.swarm.agents as u16)
    }
}

fn steps<S: Scalar>(scenario: &Scenario) -> Steps<S> {
    let algorithm = &scenario.algorithm;
    Steps {
        x: S::from_f64(algorithm.eta_x),
        y: S::from_f64(algorithm.eta_y),
        z: S::from_f64(algorithm.eta_z),
        momentum: S::from_f64(algorithm.momentum),
    }
}

fn penalty<S: Scalar>(scenario: &Scenario) -> Penalty<S> {
    let algorithm = &scenario.algorithm;
    Penalty {
        lambda: S::from_f64(algorithm.lambda),
        normalise: algorithm.normalise_by_lambda,
        form: match algorithm.penalty {
            PenaltyKind::Symmetric => PenaltyForm::Symmetric,
            PenaltyKind::OneSided => PenaltyForm::OneSided,
        },
    }
}

fn weights(scenario: &Scenario) -> graph::Weights {
    match scenario.algorithm.weights {
        WeightsKind::Uniform => graph::Weights::Uniform,
        WeightsKind::Lazy => graph::Weights::LazyPush { self_weight: scenario.algorithm.usual_self_weight() },
    }
}

const fn order(scenario: &Scenario) -> Order {
    match scenario.algorithm.order {
        OrderKind::AdaptFirst => Order::AdaptFirst,
        OrderKind::CombineFirst => Order::CombineFirst,
    }
}

/// The agents that may ever collect from each agent, where some links never come up: mass for those would wait for ever.
fn audiences(scenario: &Scenario, source: &mut LinkSource) -> Option<Vec<MemberSet>> {
    let network = &scenario.network;
    let has_fixed_links = match network.topology {
        TopologyKind::Recorded | TopologyKind::Ring | TopologyKind::ReversedRing => true,
        TopologyKind::Paper => network.edge_probability == 0.0,
        // In other flights any two agents meet sooner or later.
        TopologyKind::Motion => scenario.motion.pattern == FlightPattern::Formation,
        TopologyKind::Complete | TopologyKind::ErdosRenyi => false,
    };
    let rounds = u32::try_from(scenario.swarm.rounds).unwrap_or(u32::MAX);
    let set_of = |audience: &Vec<usize>| {
        let mut set = MemberSet::default();
        audience.iter().for_each(|&listener| {
            set.insert(listener as u16);
        });
        set
    };
    has_fixed_links.then(|| source.audiences(rounds).iter().map(set_of).collect())
}

const fn is_ring(scenario: &Scenario) -> bool {
    matches!(scenario.network.topology, TopologyKind::Ring | TopologyKind::ReversedRing)
}
