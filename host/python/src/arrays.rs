//! Metrics and answers as NumPy arrays, which take over the memory of ours.

use fabswarm_sim::record::COLUMNS;
use fabswarm_sim::swarm::{Answer, Metrics};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// One array per column, by name.
pub(crate) fn columns<'py>(py: Python<'py>, rows: &[Metrics]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let rounds = rows.iter().map(|row| row.round as i64).collect();
    columns.set_item("round", PyArray1::<i64>::from_vec(py, rounds))?;
    for (name, value) in COLUMNS {
        columns.set_item(name, PyArray1::from_vec(py, rows.iter().map(value).collect()))?;
    }
    Ok(columns)
}

/// One row, by name.
pub(crate) fn row<'py>(py: Python<'py>, metrics: &Metrics) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("round", metrics.round)?;
    for (name, value) in COLUMNS {
        row.set_item(name, value(metrics))?;
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
