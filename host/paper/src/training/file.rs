//! The file format of experiments with large models. Keys lie over each other: those of the file, of a panel, of a series, and
//! with `--quick` those of the small version.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Chart, Keys, TrainingExperiment, TrainingSeries};
use crate::experiment::{ExperimentError, QUICK};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrainingFile {
    title: String,
    source: String,
    #[serde(default)]
    notes: Vec<String>,
    charts: Vec<Chart>,
    seeds: u64,
    #[serde(default)]
    scenario: Keys,
    #[serde(default)]
    search: SearchFile,
    quick: QuickFile,
    panel: Vec<PanelFile>,
    series: Vec<SeriesFile>,
}

/// What is tried for series that ask for it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchFile {
    seed: u64,
    epochs: u64,
    values: BTreeMap<String, Vec<Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuickFile {
    scenario: Keys,
    panels: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PanelFile {
    name: String,
    #[serde(default)]
    scenario: Keys,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesFile {
    label: String,
    #[serde(default)]
    scenario: Keys,
    /// Keys whose values are searched.
    #[serde(default)]
    search: Vec<String>,
}

pub(super) fn parse(
    name: &'static str,
    text: &str,
    is_quick: bool,
) -> Result<TrainingExperiment, ExperimentError> {
    let wrong = |reason: String| ExperimentError::new(name, reason);
    let file: TrainingFile = toml_edit::de::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let mut series = Vec::new();
    for panel in file.panel.iter().filter(|panel| !is_quick || file.quick.panels.contains(&panel.name)) {
        for one in &file.series {
            let mut keys = file.scenario.clone();
            let quick = is_quick.then_some(&file.quick.scenario);
            for layer in [&panel.scenario, &one.scenario].into_iter().chain(quick) {
                keys.extend(layer.clone());
            }
            let values = |key: &String| {
                let values = file.search.values.get(key);
                let values = values.ok_or_else(|| wrong(format!("{key} has no values to search")))?;
                // Two values are a search that a test can wait for.
                let count = if is_quick { 2 } else { values.len() };
                Ok((key.clone(), values.iter().take(count).cloned().collect()))
            };
            let search = one.search.iter().map(values).collect::<Result<Vec<_>, _>>()?;
            series.push(TrainingSeries { panel: panel.name.clone(), label: one.label.clone(), keys, search });
        }
    }
    Ok(TrainingExperiment {
        name,
        title: if is_quick { format!("{} ({QUICK})", file.title) } else { file.title },
        source: file.source,
        notes: file.notes,
        charts: file.charts,
        series,
        seeds: if is_quick { 1 } else { file.seeds },
        search_seed: file.search.seed,
        search_epochs: if is_quick { 1 } else { file.search.epochs },
    })
}
