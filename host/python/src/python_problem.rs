//! Problems written in Python, one object per agent.

use fabswarm_shared::problem::{Mismatch, NoiseKey, Problem, Shape};
use fabswarm_shared::provisioning::{self, PageData, PageProblem, WriteError};
use fabswarm_sim::task::OwnTask;
use numpy::{Element, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception of what is written in Python. It ends the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstError {
    error: Arc<Mutex<Option<PyErr>>>,
    pub(crate) interrupted: Arc<AtomicBool>,
}

impl FirstError {
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn keep(&self, error: PyErr) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.interrupted.store(true, Ordering::Relaxed);
    }
}

#[derive(Clone, Debug)]
pub(crate) struct PythonTask {
    problems: Arc<[Py<PyAny>]>,
    shape: Shape,
    first_error: FirstError,
}

impl PythonTask {
    /// The task of objects that all have the sizes of the first.
    pub(crate) fn new(problems: Vec<Bound<'_, PyAny>>, first_error: FirstError) -> PyResult<Self> {
        let shape_of = |problem: &Bound<'_, PyAny>| -> PyResult<Shape> {
            Ok(Shape {
                x: problem.getattr("x_words")?.extract()?,
                y: problem.getattr("y_words")?.extract()?,
                x_is_local: problem.getattr("x_is_local")?.extract()?,
            })
        };
        let first = problems.first().ok_or_else(|| {
            PyValueError::new_err("problem = []: there is no agent\nhelp: give one problem per agent")
        })?;
        let shape = shape_of(first)?;
        for (agent, problem) in problems.iter().enumerate() {
            if shape_of(problem)? != shape {
                return Err(PyValueError::new_err(format!(
                    "the problem of agent {agent} has other sizes than that of agent 0\nhelp: give all agents the same x_words, \
                     y_words and x_is_local"
                )));
            }
        }
        Ok(Self { problems: problems.into_iter().map(Bound::unbind).collect(), shape, first_error })
    }

    pub(crate) fn agents(&self) -> usize {
        self.problems.len()
    }
}

impl OwnTask for PythonTask {
    type Problem<'a> = PythonShare<'a>;

    fn problem(&self, agent: usize) -> PythonShare<'_> {
        PythonShare { task: self, agent }
    }
}

pub(crate) struct PythonShare<'a> {
    task: &'a PythonTask,
    agent: usize,
}

impl PythonShare<'_> {
    /// Calls the object. After an exception the results are zero and the run ends.
    fn call(
        &self,
        results: &mut [&mut [f32]],
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Vec<Vec<f32>>>,
    ) {
        let called = Python::attach(|py| {
            let problem = self.task.problems.get(self.agent).map(|problem| problem.bind(py).clone());
            problem.map_or(Ok(Vec::new()), |problem| call(&problem))
        });
        match called {
            Ok(values) => results.iter_mut().zip(values).for_each(|(to, from)| to.copy_from_slice(&from)),
            Err(error) => {
                self.task.first_error.keep(error);
                results.iter_mut().for_each(|to| to.fill(0.0));
            }
        }
    }

    fn value(&self, name: &'static str, at: [&[f32]; 2]) -> f32 {
        let mut value = [0.0];
        self.call(&mut [&mut value], |problem| {
            let [x, y] = at.map(|words| PyArray1::from_slice(problem.py(), words));
            let value = problem.call_method1(name, (x, y))?;
            Ok(vec![words(name, self.agent, "the value", &value, 1)?])
        });
        value[0]
    }

    fn gradient(&self, name: &'static str, [x, y]: [&[f32]; 2], dx: &mut [f32], dy: &mut [f32]) {
        let lengths = [dx.len(), dy.len()];
        self.call(&mut [dx, dy], |problem| {
            let py = problem.py();
            let [x, y] = [x, y].map(|words| PyArray1::from_slice(py, words));
            let (dx, dy): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                problem.call_method1(name, (x, y))?.extract()?;
            Ok(vec![
                words(name, self.agent, "dx", &dx, lengths[0])?,
                words(name, self.agent, "dy", &dy, lengths[1])?,
            ])
        });
    }
}

/// The words of an array, or of what becomes one.
pub(crate) fn array_words<S: Element + Copy>(value: &Bound<'_, PyAny>) -> PyResult<Vec<S>> {
    let numpy = value.py().import(intern!(value.py(), "numpy"))?;
    let number = numpy::dtype::<S>(value.py());
    let array = numpy.call_method1("ascontiguousarray", (value, number))?.call_method0("ravel")?;
    let array: PyReadonlyArray1<'_, S> = array.extract()?;
    Ok(array.as_slice()?.to_vec())
}

/// The value that a method returned, checked to have `length` words.
pub(crate) fn words<S: Element + Copy>(
    method: &str,
    agent: usize,
    what: &str,
    value: &Bound<'_, PyAny>,
    length: usize,
) -> PyResult<Vec<S>> {
    let words = array_words(value)?;
    if words.len() != length {
        return Err(PyValueError::new_err(format!(
            "{method} of agent {agent} returned {} scalars as {what}\nhelp: return {length}",
            words.len()
        )));
    }
    Ok(words)
}

impl Problem<f32> for PythonShare<'_> {
    fn shape(&self) -> Shape {
        self.task.shape
    }

    fn check(&self) -> Result<(), Mismatch> {
        if self.task.shape.x + self.task.shape.y == 0 { Err(Mismatch::Empty) } else { Ok(()) }
    }

    fn oracle_words(&self) -> usize {
        0
    }

    fn upper_value(&self, x: &[f32], y: &[f32], _: &mut [f32]) -> f32 {
        self.value("upper_value", [x, y])
    }

    fn lower_value(&self, x: &[f32], y: &[f32], _: &mut [f32]) -> f32 {
        self.value("lower_value", [x, y])
    }

    fn upper_gradient(&self, x: &[f32], y: &[f32], dx: &mut [f32], dy: &mut [f32], _: &mut [f32]) {
        self.gradient("upper_gradient", [x, y], dx, dy);
    }

    fn lower_gradient(
        &self,
        _: NoiseKey,
        x: &[f32],
        y: &[f32],
        dx: &mut [f32],
        dy: &mut [f32],
        _: &mut [f32],
    ) {
        self.gradient("lower_gradient", [x, y], dx, dy);
    }

    fn project(&self, x: &mut [f32]) {
        let (before, length) = (x.to_vec(), x.len());
        self.call(&mut [x], |problem| {
            let projected = problem.call_method1("project", (PyArray1::from_vec(problem.py(), before),))?;
            Ok(vec![words("project", self.agent, "x", &projected, length)?])
        });
    }
}

impl<'a> PageProblem<'a> for PythonShare<'a> {
    /// No board runs Python.
    fn page_data(&self) -> Result<PageData<'a>, WriteError> {
        Err(WriteError::BufferTooSmall)
    }

    fn from_page(_: PageData<'a>) -> Result<Self, provisioning::Error> {
        Err(provisioning::Error::OtherProblem)
    }
}
