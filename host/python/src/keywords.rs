//! Keyword arguments as keys of a scenario.

use fabswarm_sim::scenario::{self, Flag, ResolvedScenario, ScenarioCommand};
use pyo3::exceptions::{PyException, PyTypeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt};
use std::ffi::CString;
use std::path::PathBuf;
use toml_edit::Value;

pyo3::create_exception!(
    fabswarm,
    ScenarioError,
    PyException,
    "A scenario that cannot be run. The message names file, key and value, and what to put there."
);

/// The scenario of a file with keyword arguments laid over it, as flags are on the command line. Notes about it are warnings.
pub(crate) fn resolve(
    command: ScenarioCommand,
    file: Option<PathBuf>,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<ResolvedScenario> {
    let py = keywords.py();
    let refused = |error: scenario::Error| ScenarioError::new_err(error.to_string());
    let mut flags = Vec::new();
    for (name, value) in keywords {
        let name = name.extract::<String>()?;
        let value = toml_value(&value).map_err(|_| {
            PyTypeError::new_err(format!(
                "{name} = {value} is no number, bool, string or path\nhelp: give one of these"
            ))
        })?;
        flags.push(Flag::named(command, &name, value).map_err(refused)?);
    }
    let resolved = scenario::resolve_for(command, file.as_deref(), &flags).map_err(refused)?;
    let category = py.get_type::<PyUserWarning>();
    for note in &resolved.notes {
        // The caller of the function that calls this one.
        PyErr::warn(py, &category, &CString::new(note.as_str())?, 2)?;
    }
    Ok(resolved)
}

fn toml_value(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::from(value.extract::<bool>()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Value::from(value.extract::<i64>()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::from(value.extract::<f64>()?));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(Value::from(text));
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        return Ok(Value::from(path.to_string_lossy().as_ref()));
    }
    // NumPy's own numbers.
    match value.call_method0("item") {
        Ok(item) if !item.is(value) => toml_value(&item),
        _ => Err(PyTypeError::new_err("no value of a key")),
    }
}
