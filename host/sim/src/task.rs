//! The data of a problem for every agent of a swarm.
//!
//! `fabswarm_shared::problem` holds the mathematics and borrows its numbers; a [`Task`] draws and owns
//! them. Everything follows from the scenario and its seed, so a board's data shard and the simulator's
//! are the same bits.

mod blobs;
mod chain_file;
mod hyper_cleaning;
mod hyper_tuning;
mod labelled_file;
mod own;
mod policy_evaluation;
mod ranking;
mod sensor_trust;
mod widened;

pub use labelled_file::refuse_doubtful;
pub use own::{AnyOwnTask, OwnProblem, OwnShare, OwnTask, TaskProblem};
pub use policy_evaluation::{Chain, PolicyEvaluationData};
pub use sensor_trust::SimulatedSensor;

use crate::scenario::{ProblemKind, Scenario};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::problem::{AnyProblem, NoiseKey, Penalty, Problem, Shape};
use fabswarm_shared::scalar::Scalar;
use hyper_cleaning::HyperCleaningData;
use hyper_tuning::HyperTuningData;
use sensor_trust::SensorTrustData;
use std::path::PathBuf;
use std::sync::Arc;

/// A named measure of how well a swarm did at its task.
pub type Score = (String, f64);

/// The problem of a whole swarm.
#[derive(Clone, Debug)]
pub enum Task<S> {
    /// Value of a policy from private rewards.
    PolicyEvaluation(PolicyEvaluationData<S>),
    /// Regulariser of a classifier.
    HyperTuning(HyperTuningData<S>),
    /// Weights of samples with corrupted labels.
    HyperCleaning(HyperCleaningData<S>),
    /// Trust in the sensors of a flying swarm.
    SensorTrust(SensorTrustData<S>),
    /// A problem that a program brings.
    Own {
        /// Its data.
        task: Arc<dyn AnyOwnTask<S>>,
        /// The file that boards compile for it.
        source: PathBuf,
    },
}

impl Task<f32> {
    /// The task that a scenario describes, which may be a program's own problem.
    ///
    /// # Errors
    /// When a file cannot be read or does not fit the scenario, or the program's own problem cannot be drawn.
    pub fn load_with(scenario: &Scenario, own: Option<&OwnProblem>) -> Result<Self, Diagnostic> {
        match own {
            Some(own) if scenario.problem.kind == ProblemKind::Own => own
                .task(scenario)
                .map_err(|error| Diagnostic::bare(format!("the program's own problem: {error}"))),
            _ => Self::load(scenario),
        }
    }
}

impl<S: Scalar> Task<S> {
    /// The task that a scenario describes, from the user's own file where it names one.
    ///
    /// # Errors
    /// When the file cannot be read or does not fit the scenario, or the problem is one that only another program has.
    pub fn load(scenario: &Scenario) -> Result<Self, Diagnostic> {
        let agents = scenario.swarm.agents;
        let Scenario { policy_evaluation, hyper_tuning, hyper_cleaning, sensor_trust, .. } = scenario;
        Ok(match scenario.problem.kind {
            ProblemKind::Own => {
                return Err(Diagnostic::new(
                    "problem.kind = \"own\" is a problem that a program of your own brings, and this one brings none",
                    "write one as docs/own-problem.md shows, or give --problem another value",
                ));
            }
            ProblemKind::PolicyEvaluation if !policy_evaluation.file.is_empty() => {
                Self::PolicyEvaluation(PolicyEvaluationData::new(&chain_file::read(scenario)?))
            }
            ProblemKind::HyperTuning if !hyper_tuning.file.is_empty() => {
                Self::HyperTuning(HyperTuningData::read(hyper_tuning, agents)?)
            }
            ProblemKind::HyperCleaning if !hyper_cleaning.file.is_empty() => {
                Self::HyperCleaning(HyperCleaningData::read(hyper_cleaning, agents)?)
            }
            ProblemKind::SensorTrust if !sensor_trust.file.is_empty() => {
                Self::SensorTrust(SensorTrustData::read(sensor_trust, agents)?)
            }
            _ => Self::draw(scenario),
        })
    }

    /// Draws the task that a scenario describes.
    ///
    /// # Panics
    /// Where `problem.kind` is `own`: [`Task::load_with`] has it.
    pub fn draw(scenario: &Scenario) -> Self {
        let (seed, agents) = (scenario.problem_seed(), scenario.swarm.agents);
        match scenario.problem.kind {
            ProblemKind::PolicyEvaluation => {
                Self::PolicyEvaluation(PolicyEvaluationData::draw(&scenario.policy_evaluation, seed, agents))
            }
            ProblemKind::HyperTuning => {
                Self::HyperTuning(HyperTuningData::draw(&scenario.hyper_tuning, seed, agents))
            }
            ProblemKind::HyperCleaning => {
                Self::HyperCleaning(HyperCleaningData::draw(&scenario.hyper_cleaning, seed, agents))
            }
            ProblemKind::SensorTrust => {
                Self::SensorTrust(SensorTrustData::draw(&scenario.sensor_trust, seed, agents))
            }
            ProblemKind::Own => panic!("`load_with` has the problem of a program, `draw` has not"),
        }
    }

    /// One agent's share.
    #[inline]
    pub fn problem(&self, agent: usize) -> TaskProblem<'_, S> {
        TaskProblem::BuiltIn(match self {
            Self::PolicyEvaluation(data) => AnyProblem::PolicyEvaluation(data.problem(data.shape(), agent)),
            Self::HyperTuning(data) => AnyProblem::HyperTuning(data.problem(agent)),
            Self::HyperCleaning(data) => AnyProblem::HyperCleaning(data.problem(agent)),
            Self::SensorTrust(data) => AnyProblem::SensorTrust(data.problem(agent)),
            Self::Own { task, .. } => return TaskProblem::Own(task.share(agent)),
        })
    }

    /// A sensor of `agent`, where the task has readings.
    pub fn simulated_sensor(&self, seed: u64, agent: usize) -> Option<SimulatedSensor> {
        match self {
            Self::SensorTrust(data) => data.simulated_sensor(seed, agent),
            _ => None,
        }
    }

    /// Brings `x` back into the set of `problem(at.agent)`, then takes that problem's gradient at all of `v`.
    /// `shape` is [`Task::shape`]; a loop that is compiled for one shape has kernels of fixed sizes, because here
    /// a problem never becomes one of several.
    #[inline(always)]
    pub(crate) fn project_and_take_gradient(
        &self,
        shape: Shape,
        penalty: &Penalty<S>,
        at: NoiseKey,
        v: &mut [S],
        d: &mut [S],
        scratch: &mut [S],
    ) {
        let agent = at.agent as usize;
        match self {
            Self::PolicyEvaluation(data) => {
                let problem = data.problem(shape, agent);
                problem.project(&mut v[..shape.x]);
                problem.penalty_gradient(penalty, at, v, d, scratch);
            }
            _ => self.project_and_take_any_gradient(penalty, at, v, d, scratch),
        }
    }

    /// For all problems but the usual one. Never inlined: they would be compiled into every loop that calls this, a minute of
    /// work for the compiler, and vector registers save them a tenth of their time only.
    #[inline(never)]
    fn project_and_take_any_gradient(
        &self,
        penalty: &Penalty<S>,
        at: NoiseKey,
        v: &mut [S],
        d: &mut [S],
        scratch: &mut [S],
    ) {
        let problem = self.problem(at.agent as usize);
        problem.project(&mut v[..problem.shape().x]);
        problem.penalty_gradient(penalty, at, v, d, scratch);
    }

    /// Sizes of every agent's decision.
    pub fn shape(&self) -> Shape {
        match self {
            Self::PolicyEvaluation(data) => data.shape(),
            _ => self.problem(0).shape(),
        }
    }

    /// Brings x, with which a row begins, back into the set that the problem allows.
    pub(crate) fn project(&self, row: &mut [S]) {
        self.problem(0).project(&mut row[..self.shape().x]);
    }

    /// The packed decision that every agent starts from.
    pub fn start(&self) -> Vec<S> {
        let mut v = vec![S::ZERO; self.shape().words()];
        match self {
            Self::HyperTuning(data) => v[0] = data.initial_tau,
            Self::Own { task, .. } => task.start(&mut v),
            _ => {}
        }
        v
    }

    /// Whether every x is kept at or above zero.
    pub fn keeps_x_non_negative(&self) -> bool {
        match self {
            Self::HyperTuning(_) => true,
            Self::Own { task, .. } => task.keeps_x_non_negative(),
            _ => false,
        }
    }

    /// The optimal x, where it is known in closed form.
    pub fn solution(&self) -> Option<&[f64]> {
        match self {
            Self::PolicyEvaluation(data) => Some(data.solution()),
            _ => None,
        }
    }

    /// How well packed decisions of all agents do, in the task's own terms.
    pub fn scores(&self, decisions: &[S]) -> Vec<Score> {
        match self {
            Self::PolicyEvaluation(_) => Vec::new(),
            Self::HyperTuning(data) => data.scores(decisions),
            Self::HyperCleaning(data) => data.scores(decisions),
            Self::SensorTrust(data) => data.scores(decisions),
            Self::Own { task, .. } => task.scores(decisions),
        }
    }
}

/// Converts drawn numbers to the precision of the agents.
pub(crate) fn converted<S: Scalar>(values: impl IntoIterator<Item = f64>) -> Vec<S> {
    values.into_iter().map(S::from_f64).collect()
}

/// The mean of one part of every agent's packed decision.
fn mean_part<S: Scalar>(decisions: &[S], shape: Shape, part: std::ops::Range<usize>) -> Vec<S> {
    let agents = decisions.len() / shape.words();
    let mut mean = vec![0.0; part.len()];
    for decision in decisions.chunks_exact(shape.words()) {
        for (mean, &word) in mean.iter_mut().zip(&decision[part.clone()]) {
            *mean += word.to_f64() / agents as f64;
        }
    }
    converted(mean)
}
