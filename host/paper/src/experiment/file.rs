//! The file format of experiments. Settings lie over each other: those of the file, of a panel, of a series, and with `--quick`
//! those of the small version.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Axis, Experiment, Series, StepChoice};
use crate::method::{MethodKind, StepSizes};
use crate::setting::Setting;

/// What is wrong with an experiment's file.
#[derive(Debug, thiserror::Error)]
#[error("experiment {name}: {reason}")]
pub struct ExperimentError {
    name: String,
    reason: String,
}

impl ExperimentError {
    pub(crate) fn new(name: &str, reason: String) -> Self {
        Self { name: name.to_owned(), reason }
    }
}

/// Steps that are tried for every method alike.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Steps on x.
    pub upper: Vec<f64>,
    /// Steps on y, z and v; methods of one level have none.
    pub lower: Vec<f64>,
    /// Seeds that are tried on; others than those that count.
    pub seeds: Vec<u64>,
    /// Rounds of each try.
    pub rounds: u32,
}

type Changes = Map<String, Value>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExperimentFile {
    title: String,
    source: String,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    axes: Vec<Axis>,
    seeds: u64,
    #[serde(default)]
    setting: Changes,
    #[serde(default)]
    grid: Grid,
    quick: QuickFile,
    #[serde(default)]
    panel: Vec<PanelFile>,
    series: Vec<SeriesFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuickFile {
    seeds: u64,
    #[serde(default)]
    setting: Changes,
    grid: Option<Grid>,
    /// The panels that stay; all where it is not given.
    panels: Option<Vec<String>>,
    /// The series that stay, by label; all where it is not given.
    series: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PanelFile {
    name: String,
    #[serde(default)]
    setting: Changes,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesFile {
    method: MethodKind,
    label: Option<String>,
    /// Panels it belongs to; all where it is not given.
    panels: Option<Vec<String>>,
    /// Given steps; searched where it is not given.
    steps: Option<StepSizes>,
    #[serde(default)]
    setting: Changes,
    paper: Option<String>,
    reference: Option<f64>,
}

/// Added to the title of a small version. Its labels are those of the whole experiment, of which it is too small to say anything.
pub(crate) const QUICK: &str = "small version, no verdict on the paper";

pub(super) fn parse(name: &'static str, text: &str, is_quick: bool) -> Result<Experiment, ExperimentError> {
    let wrong = |reason: String| ExperimentError::new(name, reason);
    let mut file: ExperimentFile = toml_edit::de::from_str(text).map_err(|error| wrong(error.to_string()))?;
    if file.panel.is_empty() {
        file.panel.push(PanelFile { name: String::new(), setting: Map::new() });
    }
    let mut series = Vec::new();
    let is_kept = |kept: &Option<Vec<String>>, name: &String| {
        !is_quick || kept.as_ref().is_none_or(|kept| kept.contains(name))
    };
    for panel in file.panel.iter().filter(|panel| is_kept(&file.quick.panels, &panel.name)) {
        for row in &file.series {
            let label = row.label.clone().unwrap_or_else(|| row.method.label().to_owned());
            let is_here = row.panels.as_ref().is_none_or(|panels| panels.contains(&panel.name));
            if !is_here || !is_kept(&file.quick.series, &label) {
                continue;
            }
            let mut changes = file.setting.clone();
            let quick = is_quick.then_some(&file.quick.setting);
            for layer in [&panel.setting, &row.setting].into_iter().chain(quick) {
                changes.extend(layer.clone());
            }
            let setting: Setting = serde_json::from_value(Value::Object(changes))
                .map_err(|error| wrong(format!("{} {label}: {error}", panel.name)))?;
            let steps = row.steps.map_or(StepChoice::Search, StepChoice::Fixed);
            let (paper, reference) = (row.paper.clone(), row.reference);
            let (panel, method) = (panel.name.clone(), row.method);
            series.push(Series { panel, label, method, steps, setting, paper, reference });
        }
    }
    Ok(Experiment {
        name,
        title: if is_quick { format!("{} ({QUICK})", file.title) } else { file.title },
        source: file.source,
        notes: file.notes,
        axes: file.axes,
        series,
        grid: file.quick.grid.filter(|_| is_quick).unwrap_or(file.grid),
        seeds: if is_quick { file.quick.seeds } else { file.seeds },
    })
}
