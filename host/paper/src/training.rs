//! The paper's experiments with large models: `fabswarm_large` trains, and the results are judged like those of the small ones.
//!
//! An experiment is a table of training scenarios. Every series of a panel is one scenario, run for every seed; keys that the paper
//! searched are searched here on one grid for all methods, on a seed that does not count.

mod campaign;
mod cell;
mod figure;
mod file;
mod outcome;
mod page;
mod verdict;

pub use campaign::run;
pub use cell::TrainingDevice;
pub use outcome::{TrainingExperimentOutcome, TrainingRunOutcome, TrainingSeriesOutcome};
pub use page::write_experiment;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::experiment::ExperimentError;

/// The experiments, in the order of the paper.
const FILES: [(&str, &str); 7] = [
    ("hyper-tuning", include_str!("../experiments/training/hyper-tuning.toml")),
    ("hyper-cleaning-corruption", include_str!("../experiments/training/hyper-cleaning-corruption.toml")),
    (
        "hyper-cleaning-heterogeneity",
        include_str!("../experiments/training/hyper-cleaning-heterogeneity.toml"),
    ),
    ("hyper-cleaning-connectivity", include_str!("../experiments/training/hyper-cleaning-connectivity.toml")),
    ("hyper-cleaning-width", include_str!("../experiments/training/hyper-cleaning-width.toml")),
    ("texts", include_str!("../experiments/training/texts.toml")),
    ("texts-time", include_str!("../experiments/training/texts-time.toml")),
];

/// Values of scenario keys, by their path.
pub type Keys = Map<String, Value>;

/// A column of an experiment's figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chart {
    /// Accuracy over epochs.
    Epochs,
    /// Accuracy over seconds.
    Seconds,
    /// Accuracy over bytes sent.
    Bytes,
    /// The learned regularisation over epochs.
    Regularisation,
}

/// One curve: a method in a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingSeries {
    /// The panel of the figure it belongs to.
    pub panel: String,
    /// Its name in legends and tables.
    pub label: String,
    /// Its scenario, where that is not the default.
    pub keys: Keys,
    /// Values that are tried for it, key by key; `a & b` are two keys with one value.
    pub search: Vec<(String, Vec<Value>)>,
}

/// A figure or table of the paper with large models.
#[derive(Clone, Debug)]
pub struct TrainingExperiment {
    /// The name by which it is run.
    pub name: &'static str,
    /// What it shows.
    pub title: String,
    /// Which figure or table of the paper.
    pub source: String,
    /// Where our setting is not the paper's, or the paper leaves it open.
    pub notes: Vec<String>,
    /// The columns of its figure.
    pub charts: Vec<Chart>,
    /// Its curves.
    pub series: Vec<TrainingSeries>,
    /// How many seeds each series is run for, from 1.
    pub seeds: u64,
    /// The seed on which values are searched.
    pub search_seed: u64,
    /// Epochs of each try.
    pub search_epochs: u64,
}

impl TrainingExperiment {
    /// All experiments; `is_quick` makes each small enough for a test, on data that come with the program.
    ///
    /// # Errors
    /// Where a file does not say what it must, which a test rules out.
    pub fn all(is_quick: bool) -> Result<Vec<Self>, ExperimentError> {
        FILES.iter().map(|(name, text)| file::parse(name, text, is_quick)).collect()
    }

    /// Gives a key of all series another value, and says so in the notes.
    pub fn set(&mut self, key: &str, value: &str) {
        self.series.iter_mut().for_each(|series| drop(series.keys.insert(key.to_owned(), value.into())));
        self.notes.push(format!("Run with {key} = {value}."));
    }

    /// The panels, in order.
    #[must_use]
    pub fn panels(&self) -> Vec<&str> {
        let mut panels: Vec<&str> = self.series.iter().map(|series| series.panel.as_str()).collect();
        panels.dedup();
        panels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_whole_and_every_scenario_is_one() {
        for is_quick in [false, true] {
            for experiment in TrainingExperiment::all(is_quick).unwrap() {
                assert!(!experiment.series.is_empty() && experiment.seeds > 0, "{}", experiment.name);
                for series in &experiment.series {
                    let cell = cell::TrainingCell::new(series, &Keys::new(), 1);
                    let resolved = cell.resolve().unwrap_or_else(|error| panic!("{}: {error}", series.label));
                    assert_eq!(is_quick, resolved.scenario.training.data == "sample", "{}", experiment.name);
                }
            }
        }
    }
}
