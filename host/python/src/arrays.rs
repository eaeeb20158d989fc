//! Metrics and answers as NumPy arrays, which take over the memory of ours.

use fabswarm_sim::swarm::Answer;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The column of integers.
const ROUND: &str = "round";

/// One array per column, by name.
pub(crate) fn columns(
    py: Python<'_>,
    columns: impl IntoIterator<Item = (impl AsRef<str>, Vec<f64>)>,
) -> PyResult<Bound<'_, PyDict>> {
    let arrays = PyDict::new(py);
    for (name, values) in columns {
        match name.as_ref() {
            ROUND => {
                let rounds = values.into_iter().map(|round| round as i64).collect();
                arrays.set_item(ROUND, PyArray1::<i64>::from_vec(py, rounds))?;
            }
            name => arrays.set_item(name, PyArray1::from_vec(py, values))?,
        }
    }
    Ok(arrays)
}

pub(crate) fn row<'py>(py: Python<'py>, values: &[(&'static str, f64)]) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    for &(name, value) in values {
        match name {
            ROUND => row.set_item(ROUND, value as i64)?,
            name => row.set_item(name, value)?,
        }
    }
    Ok(row)
}

/// x, y and z of all agents: agents × words, in the precision in which the agents computed.
pub(crate) fn variables<'py>(py: Python<'py>, answer: &Answer) -> PyResult<Bound<'py, PyDict>> {
    let variables = PyDict::new(py);
    for variable in answer.variables() {
        let shape = [answer.agents(), variable.width];
        if answer.is_single() {
            let words: Vec<f32> = variable.words.iter().map(|&word| word as f32).collect();
            variables.set_item(variable.name, PyArray1::from_vec(py, words).reshape(shape)?)?;
        } else {
            variables.set_item(variable.name, PyArray1::from_vec(py, variable.words).reshape(shape)?)?;
        }
    }
    Ok(variables)
}
