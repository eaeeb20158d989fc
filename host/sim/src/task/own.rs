//! Problems that a program of the user's own brings.

use super::{Score, Task};
use crate::scenario::Scenario;
use fabswarm_shared::problem::{AnyProblem, Problem};
use fabswarm_shared::provisioning::{self, PageData, PageProblem, WriteError};
use fabswarm_shared::scalar::Scalar;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The data of a user's problem, for every agent of a swarm.
pub trait OwnTask: fmt::Debug + Send + Sync + 'static {
    /// One agent's share, as agents in this process and on boards compute with it.
    type Problem<'a>: PageProblem<'a>;

    /// The share of `agent`.
    fn problem(&self, agent: usize) -> Self::Problem<'_>;

    /// Writes the packed decision `[x | y | z]` that every agent starts from: zeros, unless it is told otherwise.
    fn start(&self, v: &mut [f32]) {
        v.fill(0.0);
    }

    /// Whether [`Problem::project`] keeps every x at or above zero: a gradient that points out of the set then counts for nothing.
    fn keeps_x_non_negative(&self) -> bool {
        false
    }

    /// Named measures of how well the packed decisions of all agents do, one agent behind the other. They go to `summary.json`.
    fn scores(&self, _decisions: &[f32]) -> Vec<Score> {
        Vec::new()
    }
}

/// An [`OwnTask`] of any type. Every one of them is one in f32, the precision of boards.
pub trait AnyOwnTask<S>: fmt::Debug + Send + Sync {
    /// The share of `agent`.
    fn share(&self, agent: usize) -> OwnShare<'_, S>;
    /// See [`OwnTask::start`].
    fn start(&self, v: &mut [S]);
    /// See [`OwnTask::keeps_x_non_negative`].
    fn keeps_x_non_negative(&self) -> bool;
    /// See [`OwnTask::scores`].
    fn scores(&self, decisions: &[S]) -> Vec<Score>;
}

impl<T: OwnTask> AnyOwnTask<f32> for T {
    fn share(&self, agent: usize) -> OwnShare<'_, f32> {
        let problem = self.problem(agent);
        OwnShare { data: problem.page_data(), problem: Box::new(problem) }
    }
    fn start(&self, v: &mut [f32]) {
        OwnTask::start(self, v);
    }
    fn keeps_x_non_negative(&self) -> bool {
        OwnTask::keeps_x_non_negative(self)
    }
    fn scores(&self, decisions: &[f32]) -> Vec<Score> {
        OwnTask::scores(self, decisions)
    }
}

type Draw = dyn Fn(&Scenario) -> Result<Arc<dyn AnyOwnTask<f32>>, Box<dyn Error + Send + Sync>> + Send + Sync;

/// A problem that a program adds to those of fabswarm: `problem.kind = "own"`.
pub struct OwnProblem {
    source: PathBuf,
    draw: Box<Draw>,
}

impl OwnProblem {
    /// A problem whose type is in the file `source`, which boards compile too: its name there is `BoardProblem`. `draw` makes its
    /// data for all agents of a scenario, the same with every call.
    pub fn new<T: OwnTask, E: Into<Box<dyn Error + Send + Sync>>>(
        source: impl Into<PathBuf>,
        draw: impl Fn(&Scenario) -> Result<T, E> + Send + Sync + 'static,
    ) -> Self {
        let draw = move |scenario: &Scenario| {
            let task: Arc<dyn AnyOwnTask<f32>> = Arc::new(draw(scenario).map_err(Into::into)?);
            Ok(task)
        };
        Self { source: source.into(), draw: Box::new(draw) }
    }

    pub(super) fn task(&self, scenario: &Scenario) -> Result<Task<f32>, Box<dyn Error + Send + Sync>> {
        Ok(Task::Own { task: (self.draw)(scenario)?, source: self.source.clone() })
    }
}

impl fmt::Debug for OwnProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnProblem").field("source", &self.source).finish_non_exhaustive()
    }
}

/// One agent's share of a user's problem.
pub struct OwnShare<'a, S> {
    problem: Box<dyn Problem<S> + 'a>,
    data: Result<PageData<'a>, WriteError>,
}

impl<'a, S> OwnShare<'a, S> {
    /// The share with another problem over the same data.
    pub(super) fn map<T>(
        self,
        change: impl FnOnce(Box<dyn Problem<S> + 'a>) -> Box<dyn Problem<T> + 'a>,
    ) -> OwnShare<'a, T> {
        OwnShare { problem: change(self.problem), data: self.data }
    }
}

impl<S> fmt::Debug for OwnShare<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnShare").field("data", &self.data).finish_non_exhaustive()
    }
}

/// One agent's share of a task.
#[derive(Debug)]
pub enum TaskProblem<'a, S> {
    /// A problem that fabswarm has.
    BuiltIn(AnyProblem<'a, S>),
    /// A problem that a program brings.
    Own(OwnShare<'a, S>),
}

macro_rules! each_share {
    ($self:ident, $problem:ident => $call:expr) => {
        match $self {
            TaskProblem::BuiltIn($problem) => $call,
            TaskProblem::Own(share) => {
                let $problem = &*share.problem;
                $call
            }
        }
    };
}

impl<S: Scalar> Problem<S> for TaskProblem<'_, S> {
    fabswarm_shared::delegate_problem!(each_share, S);
}

impl<'a> PageProblem<'a> for TaskProblem<'a, f32> {
    fn page_data(&self) -> Result<PageData<'a>, WriteError> {
        match self {
            Self::BuiltIn(problem) => problem.page_data(),
            Self::Own(share) => share.data,
        }
    }

    /// Reads a problem that fabswarm has; problems of programs are read by their own types.
    fn from_page(data: PageData<'a>) -> Result<Self, provisioning::Error> {
        AnyProblem::from_page(data).map(Self::BuiltIn)
    }
}

impl<S> Task<S> {
    /// The file that boards compile for a user's problem.
    pub fn source(&self) -> Option<&Path> {
        match self {
            Self::Own { source, .. } => Some(source),
            _ => None,
        }
    }
}
