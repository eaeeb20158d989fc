//! The paper's experiments with large models: `fabswarm_large` trains, and the results are judged like those of the small ones.
//!
//! Every series of a panel is one training scenario, run for every seed; keys that the paper searched are searched here on one
//! grid for all methods, on seeds that do not count.

mod cell;
mod measure;
mod outcome;
mod page;

pub(crate) use measure::{AccuracyCondition, AccuracyMeasure};
pub(crate) use outcome::{TrainingPoint, TrainingRunOutcome, TrainingSeries};

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use fabswarm_diagnostic::Diagnostic;
use fabswarm_large::device::cuda::Precision;
use serde::Deserialize;
use serde_json::Value;

use crate::workload::{Keys, SeriesFile, Workload};
use cell::{TrainingCell, has_gpu};

/// A column of an experiment's figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Chart {
    Epochs,
    Seconds,
    Bytes,
    /// The learned regularisation over epochs.
    Regularisation,
}

/// The grid of a search.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeySearch {
    seeds: Vec<u64>,
    /// The panel in which the values of all panels are searched; without one, each panel has its own search.
    panel: Option<String>,
    /// Epochs of each try.
    epochs: u64,
    /// The values of each key; `a & b` are two keys with one value.
    values: BTreeMap<String, Vec<Value>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TrainingWorkload {
    /// Its keys, where they are not the default.
    pub(crate) keys: Keys,
    /// Keys of which all values are tried.
    pub(crate) search: Vec<String>,
    /// The precision of products on a GPU.
    pub(crate) precision: Precision,
}

/// The setting of a file that is no key of scenarios.
const PRECISION: &str = "precision";

impl Workload for TrainingWorkload {
    type Axis = Chart;
    type Search = KeySearch;
    type Choice = Keys;
    type Cell = TrainingCell;
    type Measure = AccuracyMeasure;
    type Condition = AccuracyCondition;
    type Point = TrainingPoint;
    type Run = TrainingRunOutcome;

    const FILES: &'static [(&'static str, &'static str)] = &[
        ("hyper-tuning", include_str!("../experiments/training/hyper-tuning.toml")),
        ("hyper-cleaning-corruption", include_str!("../experiments/training/hyper-cleaning-corruption.toml")),
        (
            "hyper-cleaning-heterogeneity",
            include_str!("../experiments/training/hyper-cleaning-heterogeneity.toml"),
        ),
        (
            "hyper-cleaning-connectivity",
            include_str!("../experiments/training/hyper-cleaning-connectivity.toml"),
        ),
        ("hyper-cleaning-width", include_str!("../experiments/training/hyper-cleaning-width.toml")),
        ("hyper-cleaning-samples", include_str!("../experiments/training/hyper-cleaning-samples.toml")),
        ("texts", include_str!("../experiments/training/texts.toml")),
        ("texts-time", include_str!("../experiments/training/texts-time.toml")),
    ];
    /// A run takes the whole device.
    const RUNS_ALONE: bool = true;

    fn parse(row: &SeriesFile, mut keys: Keys, search: &KeySearch) -> Result<(String, Self), String> {
        let label = row.label.clone().ok_or("a series without a label")?;
        if let Some(key) = row.search.iter().find(|key| !search.values.contains_key(*key)) {
            return Err(format!("{key} has no values to search"));
        }
        let precision = match keys.remove(PRECISION) {
            None => Precision::default(),
            Some(name) => name
                .as_str()
                .and_then(Precision::named)
                .ok_or_else(|| format!("{PRECISION} = {name} is none"))?,
        };
        Ok((label, Self { keys, search: row.search.clone(), precision }))
    }

    fn given(&self) -> Option<Keys> {
        self.search.is_empty().then(Keys::new)
    }

    /// Every combination of the values that are tried.
    fn options(&self, search: &KeySearch) -> Vec<Keys> {
        self.search.iter().fold(vec![Keys::new()], |all, key| {
            let values = &search.values[key];
            let longer = all.iter().flat_map(|keys| {
                values.iter().map(|value| {
                    let mut keys = keys.clone();
                    keys.insert(key.clone(), value.clone());
                    keys
                })
            });
            longer.collect()
        })
    }

    fn search_seeds(search: &KeySearch) -> &[u64] {
        &search.seeds
    }

    fn search_panel(search: &KeySearch) -> Option<&str> {
        search.panel.as_deref()
    }

    fn trial(&self, choice: &Keys, seed: u64, search: &KeySearch) -> TrainingCell {
        let mut short = choice.clone();
        short.insert("training.epochs".to_owned(), search.epochs.into());
        self.cell(&short, seed)
    }

    /// The accuracy lost; without bound where a run diverged.
    fn score(runs: &[TrainingRunOutcome]) -> f64 {
        let loss =
            |run: &TrainingRunOutcome| if run.has_diverged { f64::INFINITY } else { -run.last().accuracy };
        runs.iter().map(loss).sum::<f64>() / runs.len() as f64
    }

    fn cell(&self, choice: &Keys, seed: u64) -> TrainingCell {
        let mut keys = self.keys.clone();
        keys.extend(choice.clone());
        TrainingCell { keys, seed, gpu: has_gpu().then(|| self.precision.name()) }
    }

    fn effort(_: &TrainingCell) -> u64 {
        1
    }

    fn run(cell: &TrainingCell, interrupted: &AtomicBool) -> Result<Option<TrainingRunOutcome>, Diagnostic> {
        cell.run(interrupted)
    }

    fn points(run: &TrainingRunOutcome) -> &[TrainingPoint] {
        &run.points
    }

    fn has_moved(_: &TrainingSeries) -> bool {
        true
    }

    fn set(&mut self, key: &str, value: &str) -> bool {
        self.keys.insert(key.to_owned(), value.into());
        true
    }

    fn has_device() -> bool {
        has_gpu()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn every_file_is_whole_and_every_scenario_is_one() {
        for is_quick in [false, true] {
            for experiment in Experiment::<TrainingWorkload>::all(is_quick).unwrap() {
                assert!(experiment.seeds > 0 && experiment.margin > 0.0, "{}", experiment.name);
                assert!(!experiment.series.is_empty(), "{}", experiment.name);
                for series in &experiment.series {
                    let cell = series.work.cell(&Keys::new(), 1);
                    let resolved = cell.resolve().unwrap_or_else(|error| panic!("{}: {error}", series.label));
                    assert_eq!(is_quick, resolved.scenario.training.data == "sample", "{}", experiment.name);
                }
            }
        }
    }

    #[test]
    fn all_values_are_combined() {
        let values = |values: &[i32]| values.iter().map(|value| (*value).into()).collect();
        let values = [("a".to_owned(), values(&[1, 2])), ("b & c".to_owned(), values(&[3, 4, 5]))];
        let search = KeySearch { values: values.into(), ..KeySearch::default() };
        let work = TrainingWorkload {
            keys: Keys::new(),
            search: search.values.keys().cloned().collect(),
            precision: Precision::default(),
        };
        let all = work.options(&search);
        assert_eq!(all.len(), 6);
        assert_eq!((&all[4]["a"], &all[4]["b & c"]), (&2.into(), &4.into()));
    }
}
