//! Runs of the past, from their folders.

use crate::arrays;
use crate::keywords::ScenarioError;
use fabswarm_sim::record::metric_columns;
use fabswarm_sim::swarm::ErrorKind;
use fabswarm_view::RunFiles;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Metrics and scenario of the run in `folder`, by name; of a run that was killed, as far as it got.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, folder: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let files = py.detach(|| RunFiles::read(&folder));
    let RunFiles { scenario, mut metrics, .. } =
        files.map_err(|error| ScenarioError::new_err(error.to_string()))?;
    // In the order of the file, as far as it is known.
    let columns = ErrorKind::ALL.into_iter().flat_map(metric_columns).map(|(name, _)| name);
    let known = std::iter::once("round").chain(columns);
    let known: Vec<_> =
        known.filter_map(|name| metrics.remove(name).map(|values| (name.to_owned(), values))).collect();
    let values = PyDict::new(py);
    values.set_item("metrics", arrays::columns(py, known.into_iter().chain(metrics))?)?;
    values.set_item("scenario", scenario)?;
    Ok(values)
}
