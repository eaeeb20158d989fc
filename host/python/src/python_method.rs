//! Methods written in Python, one object per agent.

use crate::python_problem::{FirstError, array_words, words};
use fabswarm_shared::problem::{NoiseKey, Problem, Shape};
use fabswarm_sim::Diagnostic;
use fabswarm_sim::swarm::{MethodFrames, MethodStates, RoundMethod};
use fabswarm_sim::task::Task;
use numpy::PyArray1;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

type LevelGradient<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// One agent's share of the problem of a run, in double precision, as its method sees it.
#[pyclass(frozen, module = "fabswarm._native")]
pub(crate) struct ProblemShare {
    task: Arc<Task<f64>>,
    agent: usize,
    /// Names the noise of its gradients.
    round: Arc<AtomicU32>,
}

#[pymethods]
impl ProblemShare {
    #[getter]
    fn agent(&self) -> usize {
        self.agent
    }

    #[getter]
    fn x_words(&self) -> usize {
        self.task.shape().x
    }

    #[getter]
    fn y_words(&self) -> usize {
        self.task.shape().y
    }

    #[getter]
    fn x_is_local(&self) -> bool {
        self.task.shape().x_is_local
    }

    /// The x and y that every agent starts from.
    fn start<'py>(&self, py: Python<'py>) -> LevelGradient<'py> {
        let v = self.task.start();
        let (x, y, _) = self.task.shape().split(&v);
        (PyArray1::from_slice(py, x), PyArray1::from_slice(py, y))
    }

    /// ∂f/∂x and ∂f/∂y.
    fn upper_gradient<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        y: &Bound<'py, PyAny>,
    ) -> PyResult<LevelGradient<'py>> {
        self.gradient("upper_gradient", [x, y], |problem, x, y, dx, dy, scratch| {
            problem.upper_gradient(x, y, dx, dy, scratch);
        })
    }

    /// ∂g/∂x and ∂g/∂y, with the noise of the present round.
    fn lower_gradient<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        y: &Bound<'py, PyAny>,
    ) -> PyResult<LevelGradient<'py>> {
        let at = NoiseKey { agent: self.agent as u32, round: self.round.load(Ordering::Relaxed) };
        self.gradient("lower_gradient", [x, y], |problem, x, y, dx, dy, scratch| {
            problem.lower_gradient(at, x, y, dx, dy, scratch);
        })
    }

    /// x, brought back into the set it must stay in.
    fn project<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut words: Vec<f64> = words("project", self.agent, "x", x, self.x_words())?;
        self.task.problem(self.agent).project(&mut words);
        Ok(PyArray1::from_vec(x.py(), words))
    }
}

impl ProblemShare {
    fn gradient<'py>(
        &self,
        name: &str,
        [x, y]: [&Bound<'py, PyAny>; 2],
        gradient: impl FnOnce(&dyn Problem<f64>, &[f64], &[f64], &mut [f64], &mut [f64], &mut [f64]),
    ) -> PyResult<LevelGradient<'py>> {
        let (py, shape, problem) = (x.py(), self.task.shape(), self.task.problem(self.agent));
        let x: Vec<f64> = words(name, self.agent, "x", x, shape.x)?;
        let y: Vec<f64> = words(name, self.agent, "y", y, shape.y)?;
        let (mut dx, mut dy) = (vec![0.0; shape.x], vec![0.0; shape.y]);
        gradient(&problem, &x, &y, &mut dx, &mut dy, &mut vec![0.0; problem.oracle_words()]);
        Ok((PyArray1::from_vec(py, dx), PyArray1::from_vec(py, dy)))
    }
}

/// Makes the objects of a method, once the problem of its run is known.
pub(crate) struct MethodMaker {
    pub(crate) class: Py<PyAny>,
    pub(crate) first_error: FirstError,
}

impl MethodMaker {
    /// One object for each agent. An exception ends the run before it begins.
    pub(crate) fn make(self, task: &Task<f64>, agents: usize) -> Result<Box<dyn RoundMethod>, Diagnostic> {
        let (shape, round) = (task.shape(), Arc::default());
        let task = Arc::new(task.clone());
        let made = Python::attach(|py| {
            let share = |agent| ProblemShare { task: Arc::clone(&task), agent, round: Arc::clone(&round) };
            let objects = (0..agents).map(|agent| self.class.call1(py, (share(agent),)));
            let objects = objects.collect::<PyResult<Vec<_>>>()?;
            let states = states(py, &objects, shape)?;
            PyResult::Ok((objects, states))
        });
        let (objects, states) = made.map_err(|error| {
            let message = error.to_string();
            self.first_error.keep(error);
            Diagnostic::bare(message)
        })?;
        Ok(Box::new(PythonMethod { objects, shape, states, round, first_error: self.first_error }))
    }
}

#[derive(Debug)]
struct PythonMethod {
    objects: Vec<Py<PyAny>>,
    shape: Shape,
    states: MethodStates,
    round: Arc<AtomicU32>,
    first_error: FirstError,
}

impl PythonMethod {
    fn exchange(&self, py: Python<'_>, frames: &MethodFrames) -> PyResult<MethodStates> {
        let mut sent = Vec::with_capacity(self.objects.len());
        for (object, listeners) in self.objects.iter().zip(&frames.listeners) {
            // A copy: its sender may go on to change what it has sent.
            let frame: Vec<f64> = array_words(object.call_method1(py, "send", (*listeners,))?.bind(py))?;
            let frame = PyArray1::from_vec(py, frame);
            frame.call_method1("setflags", (false,))?;
            sent.push(frame);
        }
        self.round.fetch_add(1, Ordering::Relaxed);
        for (object, senders) in self.objects.iter().zip(&frames.heard) {
            let heard: Vec<_> = senders.iter().map(|&sender| (sender, &sent[sender])).collect();
            object.call_method1(py, "receive", (heard,))?;
        }
        states(py, &self.objects, self.shape)
    }
}

/// The decisions of all objects, and their directions where they tell them.
fn states(py: Python<'_>, objects: &[Py<PyAny>], shape: Shape) -> PyResult<MethodStates> {
    let mut states = MethodStates { v: Vec::new(), d: Vec::new(), defect: Vec::new() };
    for (agent, object) in objects.iter().enumerate() {
        let part =
            |name: &str, length| words("the method", agent, name, object.getattr(py, name)?.bind(py), length);
        let (x, y): (Vec<f64>, Vec<f64>) = (part("x", shape.x)?, part("y", shape.y)?);
        let z = part("z", shape.y)?;
        states.v.extend([x, y, z].concat());
        let is_told = !object.getattr(py, "direction")?.is_none(py);
        states.d.extend(if is_told {
            part("direction", shape.words())?
        } else {
            vec![f64::NAN; shape.words()]
        });
    }
    Ok(states)
}

impl RoundMethod for PythonMethod {
    /// After an exception the states remain, and the run ends.
    fn round(&mut self, frames: &MethodFrames) {
        match Python::attach(|py| self.exchange(py, frames)) {
            Ok(states) => self.states = states,
            Err(error) => self.first_error.keep(error),
        }
    }

    fn states(&self) -> &MethodStates {
        &self.states
    }
}
