//! A run in progress, as Python holds it.

use crate::arrays;
use crate::keywords::{self, ScenarioError};
use crate::python_method::MethodMaker;
use crate::python_problem::{FirstError, PythonTask};
use crate::run_thread::{self, EndedRun, RowCollector, RunEvent};
#[cfg(feature = "large")]
use crate::training::run as train;
#[cfg(not(feature = "large"))]
use fabswarm_sim::scenario::ResolvedScenario;
use fabswarm_sim::scenario::{Scenario, ScenarioCommand};
use fabswarm_sim::task::OwnProblem;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pyo3::create_exception!(
    fabswarm,
    RunError,
    PyException,
    "A run that did not reach its goal or could not be kept. The message says why, and what to try."
);

/// Pause between two checks for Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A run on its thread.
#[pyclass(frozen, module = "fabswarm._native")]
pub(crate) struct LiveRun {
    events: Mutex<Receiver<RunEvent>>,
    go: SyncSender<()>,
    /// Whether the run waits for `go`.
    is_waiting: AtomicBool,
    scenario: String,
    /// The first exception of a problem written in Python.
    first_error: FirstError,
}

#[pymethods]
impl LiveRun {
    /// Begins a run. With `rows` it waits until each row is taken; with `answers` rows come with the agents' decisions.
    #[new]
    #[pyo3(signature = (file, keywords, problems, method, *, rows, answers))]
    fn new(
        py: Python<'_>,
        file: Option<PathBuf>,
        keywords: &Bound<'_, PyDict>,
        problems: Option<Vec<Bound<'_, PyAny>>>,
        method: Option<Py<PyAny>>,
        rows: bool,
        answers: bool,
    ) -> PyResult<Self> {
        let resolved = keywords::resolve(ScenarioCommand::Run, file, keywords)?;
        let first_error = FirstError::default();
        let task = problems.map(|problems| PythonTask::new(problems, first_error.clone())).transpose()?;
        let method = method.map(|class| MethodMaker { class, first_error: first_error.clone() });
        let own = task.map(|task| OwnProblem::new("", move |scenario| share_out(&task, scenario)));
        let scenario = resolved.to_repeatable_toml();
        let run = move |rows| run_thread::run(&resolved, own.as_ref(), method, answers, rows);
        Self::begin(py, scenario, rows, first_error, run)
    }

    /// Begins to train; with `rows` it waits until each row is taken.
    #[staticmethod]
    #[pyo3(signature = (file, keywords, device, precision, *, rows))]
    fn training(
        py: Python<'_>,
        file: Option<PathBuf>,
        keywords: &Bound<'_, PyDict>,
        device: String,
        precision: String,
        rows: bool,
    ) -> PyResult<Self> {
        let resolved = keywords::resolve(ScenarioCommand::Train, file, keywords)?;
        let scenario = resolved.to_repeatable_toml();
        let run = move |rows| train(resolved, &device, &precision, rows);
        Self::begin(py, scenario, rows, FirstError::default(), run)
    }

    /// A whole training, and its outcome.
    #[staticmethod]
    fn train_to_end<'py>(
        py: Python<'py>,
        file: Option<PathBuf>,
        keywords: &Bound<'_, PyDict>,
        device: String,
        precision: String,
    ) -> PyResult<(Self, Bound<'py, PyAny>)> {
        Self::training(py, file, keywords, device, precision, false)?.ended(py)
    }

    /// A whole run, and its outcome.
    #[staticmethod]
    fn to_end<'py>(
        py: Python<'py>,
        file: Option<PathBuf>,
        keywords: &Bound<'_, PyDict>,
        problems: Option<Vec<Bound<'_, PyAny>>>,
        method: Option<Py<PyAny>>,
    ) -> PyResult<(Self, Bound<'py, PyAny>)> {
        Self::new(py, file, keywords, problems, method, false, false)?.ended(py)
    }

    /// The scenario as a file that gives the run again.
    #[getter]
    fn scenario(&self) -> &str {
        &self.scenario
    }

    /// Ends the run after its present round.
    fn stop(&self) {
        self.first_error.interrupted.store(true, Ordering::Relaxed);
    }

    /// Lets the run go on, and waits for the next row: `(row, answer or None)`, or the outcome of the run at its end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.is_waiting.swap(false, Ordering::Relaxed) {
            let _ = self.go.try_send(());
        }
        match self.wait(py)? {
            RunEvent::Begun => unreachable!("a run begins once"),
            RunEvent::Row(row, answer) => {
                self.is_waiting.store(true, Ordering::Relaxed);
                let answer = answer.map(|answer| arrays::variables(py, &answer)).transpose()?;
                (arrays::row(py, &row)?, answer).into_bound_py_any(py)
            }
            RunEvent::Ended(ended) => match self.first_error.take() {
                Some(error) => Err(error),
                None => outcome(py, *ended),
            },
            RunEvent::Failed(message) => Err(self.error_or(RunError::new_err(message))),
        }
    }
}

impl LiveRun {
    /// Does `run` on a thread, and waits until it has begun.
    fn begin(
        py: Python<'_>,
        scenario: String,
        rows: bool,
        first_error: FirstError,
        run: impl FnOnce(RowCollector) -> Result<EndedRun, String> + Send + 'static,
    ) -> PyResult<Self> {
        let (go, gone) = sync_channel(1);
        let events = run_thread::start(rows.then_some(gone), &first_error.interrupted, run);
        let (events, is_waiting) = (Mutex::new(events), AtomicBool::new(false));
        let run = Self { events, go, is_waiting, scenario, first_error };
        // Python never sees a run that is interrupted here, and so could not wait for its end.
        match run.wait(py).inspect_err(|_| run.drain(py))? {
            RunEvent::Begun => Ok(run),
            RunEvent::Failed(message) => Err(run.error_or(ScenarioError::new_err(message))),
            RunEvent::Row(..) | RunEvent::Ended(_) => unreachable!("a run begins first"),
        }
    }

    /// Waits for the end of a run without taking rows. Ctrl-C ends it; the exception comes once its folder is complete.
    fn ended<'py>(self, py: Python<'py>) -> PyResult<(Self, Bound<'py, PyAny>)> {
        let outcome = self.next(py).inspect_err(|_| self.drain(py))?;
        Ok((self, outcome))
    }

    /// The exception of a problem, which came before `error`.
    fn error_or(&self, error: PyErr) -> PyErr {
        self.first_error.take().unwrap_or(error)
    }

    /// The next event. On Ctrl-C the run is told to end, and the exception is Python's.
    fn wait(&self, py: Python<'_>) -> PyResult<RunEvent> {
        loop {
            let event = py.detach(|| {
                self.events.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK_EVERY)
            });
            match event {
                Ok(event) => return Ok(event),
                Err(RecvTimeoutError::Timeout) => {
                    py.check_signals().inspect_err(|_| self.stop())?;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(RunError::new_err("the run has ended\nhelp: begin another one"));
                }
            }
        }
    }

    /// Waits until the run has ended and its folder is complete, or for another Ctrl-C.
    fn drain(&self, py: Python<'_>) {
        while self.wait(py).is_ok() {}
    }
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        self.stop();
    }
}

/// There are no large agents in this build.
#[cfg(not(feature = "large"))]
fn train(_: ResolvedScenario, _: &str, _: &str, _: RowCollector) -> Result<EndedRun, String> {
    Err("this build of fabswarm has no large agents\nhelp: build its wheel with `maturin build --release --features large`".to_owned())
}

/// The problems, if there are as many as agents.
fn share_out(task: &PythonTask, scenario: &Scenario) -> Result<PythonTask, String> {
    let (problems, agents) = (task.agents(), scenario.swarm.agents);
    if problems != agents {
        return Err(format!(
            "{problems} problems for swarm.agents = {agents}\nhelp: leave out agents, or give as many problems"
        ));
    }
    Ok(task.clone())
}

/// Metrics, answer and summary of a run that has ended, by name.
fn outcome(py: Python<'_>, ended: EndedRun) -> PyResult<Bound<'_, PyAny>> {
    let values = PyDict::new(py);
    values.set_item("metrics", arrays::columns(py, ended.columns)?)?;
    let answer = ended.answer.map(|answer| arrays::variables(py, &answer)).transpose()?;
    values.set_item("answer", answer)?;
    values.set_item("summary", ended.summary)?;
    values.set_item("complaint", ended.complaint)?;
    values.set_item("folder", ended.folder)?;
    Ok(values.into_any())
}
