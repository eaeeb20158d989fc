//! Agents inside this process, and what a run sees of any swarm.

use crate::air::{Air, FrameCounts};
use crate::scenario::{Scenario, ScenarioCommand};
use crate::task::Score;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::agent::{Fault, FaultCause};
use fabswarm_shared::problem::Shape;

mod agents;
mod answer;
mod baseline;
mod books;
mod exact;
mod links;
mod measure;
mod method_swarm;
mod plain;
mod readings;
mod unguarded;
mod view;

pub use fabswarm_shared::fab::Phases;

pub use agents::{
    AgentProblem, AgentSwarm, AgentSwarmConfig, BoardChange, BoardReports, BoardWarning, DigestCounts,
    HeapPeers, Remote, ShadowRound, UncollectedMass,
};
pub use answer::{Answer, AnswerVariable};
pub(crate) use baseline::Baseline;
pub use books::{BrokenBooks, Imbalance};
pub use exact::ArrayLedger;
pub use measure::{ErrorKind, Meter, Metrics, States};
pub use method_swarm::{MethodFrames, MethodStates, MethodSwarm, RoundMethod};
pub use plain::{ArrayFab, ArrayFabConfig, MixingRule};
pub use readings::ReadingLog;
pub(crate) use unguarded::FaultyAirFab;
pub use view::{
    AgentCondition, AgentView, BoardView, LinkView, MOST_AGENTS_IN_FULL, MOST_AGENTS_SEEN, SwarmView,
    ViewRequest,
};

/// Agents that step together, wherever they run.
pub trait Swarm {
    /// Takes every agent through one round.
    ///
    /// # Errors
    /// When the swarm diverges, or a board is lost.
    fn step(&mut self) -> Result<(), SwarmError>;
    /// Waits until boards have come as far as the rounds that were stepped through.
    ///
    /// # Errors
    /// When a board is lost, or differs from its shadow.
    fn finish(&mut self) -> Result<(), SwarmError> {
        Ok(())
    }
    /// Gives agents the fresh readings of a run that is executed again without its boards.
    fn replay_readings(&mut self, _log: ReadingLog) {}
    /// Metrics of the present state.
    fn metrics(&self) -> Metrics;
    /// Rounds done so far.
    fn round(&self) -> u64;
    /// Frames so far, as the air counts them if there is one.
    fn counts(&self) -> FrameCounts {
        self.air().map(|air| air.counters().into()).unwrap_or_default()
    }
    /// The phases of agents in lock-step.
    fn phases(&self) -> Phases {
        Phases::TOGETHER
    }
    /// The decisions of all agents as they stand.
    fn answer(&self) -> Answer;
    /// How well the swarm does in its task's own terms.
    fn scores(&self) -> Vec<Score>;
    /// The mass that was given and not collected yet, if agents exchange frames.
    fn uncollected_mass(&self) -> Option<UncollectedMass> {
        None
    }
    /// Members of the highest epoch that nobody in it has ever heard, if agents exchange frames.
    fn unheard_members(&self) -> Option<Vec<u16>> {
        None
    }
    /// The air, if agents exchange frames.
    fn air(&self) -> Option<&Air> {
        None
    }
    /// What an observer sees of agents and links now.
    fn view(&self, request: &ViewRequest) -> SwarmView;
    /// The reports of its boards, if agents run on some.
    fn boards(&mut self) -> Option<&mut dyn BoardReports> {
        None
    }
}

/// Why a swarm cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum SwarmError {
    /// A state is NaN, infinite or out of the ledger's range.
    #[error(transparent)]
    Diverged(#[from] DivergenceError),
    /// Mass was made or lost.
    #[error(transparent)]
    Books(#[from] BrokenBooks),
    /// A board is lost, or is not what its shadow is.
    #[error(transparent)]
    Boards(#[from] Diagnostic),
    /// The user interrupted a wait for boards that do not answer.
    #[error("interrupted while waiting for boards")]
    Interrupted,
}

/// Advice for a swarm that diverges. Lowering a single step size can make it worse; lowering all three never did.
pub const LOWER_THE_STEPS: &str =
    "lower eta_x, eta_y and eta_z by the same factor, 4 for a start; one of them alone can make it worse";

/// Advice where the symmetric penalty has no minimum.
pub const RAISE_LAMBDA: &str = "raise algorithm.lambda, or set algorithm.penalty to \"one-sided\"";

/// Advice for a swarm of `command` that diverges.
pub fn divergence_remedy(scenario: &Scenario, command: ScenarioCommand) -> String {
    let algorithm = &scenario.algorithm;
    let lambda = algorithm.lambda;
    let steps = [("eta_x", algorithm.eta_x), ("eta_y", algorithm.eta_y), ("eta_z", algorithm.eta_z)];
    let larger = steps.into_iter().zip(scenario.default_steps(command));
    let larger: Vec<String> = larger
        .filter(|((_, step), default)| *step > 2.0 * default)
        .map(|((name, step), default)| format!("{name} is {step}, and {default} by default here"))
        .collect();
    if !larger.is_empty() {
        return format!("{}: begin with the default", larger.join("; "));
    }
    if algorithm.normalise_by_lambda || lambda <= 1.0 {
        return LOWER_THE_STEPS.to_owned();
    }
    let [x, y, z] = [algorithm.eta_x, algorithm.eta_y, algorithm.eta_z].map(|step| step / lambda);
    format!(
        "without normalise_by_lambda gradients are lambda times as large: divide the steps by lambda = {lambda}, \
         --eta-x {x:.2e} --eta-y {y:.2e} --eta-z {z:.2e}"
    )
}

/// A state that is NaN, infinite or out of the ledger's range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", Diagnostic::from(self.clone()))]
pub struct DivergenceError {
    /// The round that broke it.
    pub round: u64,
    /// The first agent it broke.
    pub agent: usize,
    /// The first variable of that agent.
    pub variable: &'static str,
    /// The fault.
    pub cause: FaultCause,
}

impl From<DivergenceError> for Diagnostic {
    fn from(error: DivergenceError) -> Self {
        Self::new(format!("the swarm diverged in round {}: {}", error.round, error.what()), LOWER_THE_STEPS)
    }
}

impl DivergenceError {
    /// The diagnosis for a fault of `agent` in `round`.
    pub(crate) const fn from_fault(round: u64, agent: usize, shape: &Shape, fault: Fault) -> Self {
        let variable = match fault.word {
            word if word < shape.x => "x",
            word if word < shape.x + shape.y => "y",
            _ => "z",
        };
        Self { round, agent, variable, cause: fault.cause }
    }

    /// The fault, with variable and agent.
    fn what(&self) -> String {
        let Self { agent, variable, cause, .. } = self;
        match cause {
            FaultCause::DecisionNotFinite => format!("{variable} of agent {agent} is no longer finite"),
            FaultCause::GradientNotFinite => {
                format!("the gradient of {variable} of agent {agent} is no longer finite")
            }
            FaultCause::GradientOutOfRange => {
                format!("the gradient of {variable} of agent {agent} left the range of the exact ledger")
            }
            other => format!("agent {agent} stopped: {other}"),
        }
    }
}
