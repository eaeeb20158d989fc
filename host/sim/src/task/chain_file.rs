//! A policy-evaluation problem of the user's own: P, Φ and the agents' rewards in a file.

use fabswarm_diagnostic::Diagnostic;
use std::path::Path;

use nalgebra::DMatrix;

use super::policy_evaluation::Chain;
use crate::data_file::{DataFile, NamedArrays};
use crate::npz::NpyArray;
use crate::scenario::Scenario;

const FORM: &str = "give an .npz of numpy.savez, safetensors or JSON with P (states x states), phi (states x features) and r (agents x states)";

/// Reads the problem that `policy_evaluation.file` of `scenario` names.
pub(super) fn read(scenario: &Scenario) -> Result<Chain, Diagnostic> {
    let section = &scenario.policy_evaluation;
    let path = Path::new(&section.file);
    let refuse = |what: String, remedy: &str| Diagnostic::of_file(path, what, remedy);
    let has_arrays =
        path.extension().is_some_and(|extension| extension == "npz" || extension == "safetensors");
    let arrays = match if has_arrays { Some(DataFile::read(path)?) } else { None } {
        Some(DataFile::Arrays(arrays)) => arrays,
        _ => json(path).map_err(|what| refuse(what, FORM))?,
    };
    let matrix = |name: &str| -> Result<DMatrix<f64>, Diagnostic> {
        let array = arrays.get(name).ok_or_else(|| refuse(format!("there is no `{name}` in it"), FORM))?;
        let [rows, columns] = array.shape[..] else {
            return Err(refuse(format!("`{name}` has {} dimensions", array.shape.len()), FORM));
        };
        if let Some(at) = array.values.iter().position(|value| !value.is_finite()) {
            let (row, column) = (at / columns.max(1), at % columns.max(1));
            return Err(refuse(
                format!("`{name}` has {} in row {row}, column {column}", array.values[at]),
                "give finite numbers",
            ));
        }
        Ok(DMatrix::from_row_slice(rows, columns, &array.values))
    };
    let (transitions, features, rewards) = (matrix("P")?, matrix("phi")?, matrix("r")?);
    let (states, agents) = (features.nrows(), scenario.swarm.agents);
    if rewards.is_empty() {
        return Err(refuse("`r` has no rewards".to_owned(), FORM));
    }
    if rewards.nrows() != agents {
        let found = rewards.nrows();
        return Err(refuse(
            format!("it has rewards of {found} agents, and swarm.agents = {agents}"),
            &format!("set swarm.agents = {found}"),
        ));
    }
    if section.regularisation == 0.0 && features.ncols() > states {
        let what = "more features than states leave more than one solution".to_owned();
        return Err(refuse(what, "set policy_evaluation.regularisation above 0"));
    }
    for (name, shape, wanted) in
        [("P", transitions.shape(), (states, states)), ("r", rewards.shape(), (agents, states))]
    {
        if shape != wanted {
            let what =
                format!("`{name}` is {} x {} and must be {} x {}", shape.0, shape.1, wanted.0, wanted.1);
            return Err(refuse(what, FORM));
        }
    }
    let chain = Chain {
        features,
        transitions,
        rewards: rewards.transpose(),
        discount: section.discount,
        regularisation: section.regularisation,
        upper_weight: section.upper_weight,
        lower_weight: section.lower_weight,
        reward_noise: section.reward_noise,
        seed: scenario.problem_seed(),
    };
    chain.check().map_err(|(what, remedy)| refuse(what, remedy))?;
    Ok(chain)
}

/// The matrices of a JSON file, as lists of rows.
fn json(path: &Path) -> Result<NamedArrays, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut keys: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&text).map_err(|error| format!("not such a file ({error})"))?;
    let mut arrays = NamedArrays::new();
    // Other keys may hold anything.
    for (name, value) in ["P", "phi", "r"].into_iter().filter_map(|name| Some((name, keys.remove(name)?))) {
        let rows: Vec<Vec<f64>> = serde_json::from_value(value)
            .map_err(|error| format!("`{name}` is not a list of rows of numbers ({error})"))?;
        let columns = rows.first().map_or(0, Vec::len);
        if let Some(row) = rows.iter().position(|row| row.len() != columns) {
            return Err(format!(
                "row {row} of `{name}` has {} numbers, and row 0 has {columns}",
                rows[row].len()
            ));
        }
        arrays.insert(name.to_owned(), NpyArray { shape: vec![rows.len(), columns], values: rows.concat() });
    }
    Ok(arrays)
}
