//! Experiments: one file each, named by the figure or table of the paper.

mod file;

#[cfg(feature = "large")]
pub(crate) use file::QUICK;
pub use file::{ExperimentError, Grid};

use serde::{Deserialize, Serialize};

use crate::method::{MethodKind, StepSizes};
use crate::setting::Setting;

/// The experiments, in the order of the paper.
const FILES: [(&str, &str); 11] = [
    ("rates", include_str!("../experiments/rates.toml")),
    ("policy-evaluation", include_str!("../experiments/policy-evaluation.toml")),
    ("policy-evaluation-noise", include_str!("../experiments/policy-evaluation-noise.toml")),
    ("policy-evaluation-100", include_str!("../experiments/policy-evaluation-100.toml")),
    ("policy-evaluation-1000", include_str!("../experiments/policy-evaluation-1000.toml")),
    ("agents", include_str!("../experiments/agents.toml")),
    ("weights", include_str!("../experiments/weights.toml")),
    ("rings", include_str!("../experiments/rings.toml")),
    ("integrations", include_str!("../experiments/integrations.toml")),
    ("sensitivity", include_str!("../experiments/sensitivity.toml")),
    ("lost-frames", include_str!("../experiments/lost-frames.toml")),
];

/// What the columns of a figure have on their horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Iterations: rounds, or outer iterations of a double loop.
    Iterations,
    /// Rounds of communication.
    Rounds,
    /// Floats that crossed links.
    Floats,
    /// Seconds on one core.
    Seconds,
}

/// How the steps of a series are found.
#[derive(Clone, Debug, PartialEq)]
pub enum StepChoice {
    /// Given.
    Fixed(StepSizes),
    /// The best of the experiment's grid, on seeds that do not count.
    Search,
}

/// One curve or row: a method in a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The panel of the figure it belongs to.
    pub panel: String,
    /// Its name in legends and tables.
    pub label: String,
    /// The method.
    pub method: MethodKind,
    /// Its steps.
    pub steps: StepChoice,
    /// The setting.
    pub setting: Setting,
    /// What the paper prints for it.
    pub paper: Option<String>,
    /// What an independent implementation measured: mean rounds to one per cent.
    pub reference: Option<f64>,
}

/// A figure or table of the paper.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The name by which it is run.
    pub name: &'static str,
    /// What it shows.
    pub title: String,
    /// Which figure or table of the paper.
    pub source: String,
    /// Where our setting is not the paper's, or the paper leaves it open.
    pub notes: Vec<String>,
    /// The columns of its figure; none where it is a table.
    pub axes: Vec<Axis>,
    /// Its curves or rows.
    pub series: Vec<Series>,
    /// The steps that are tried for [`StepChoice::Search`].
    pub grid: Grid,
    /// How many seeds each series is run for, from 1.
    pub seeds: u64,
}

impl Experiment {
    /// All experiments; `is_quick` makes each small enough for a test.
    ///
    /// # Errors
    /// Where a file does not say what it must, which a test rules out.
    pub fn all(is_quick: bool) -> Result<Vec<Self>, ExperimentError> {
        FILES.iter().map(|(name, text)| file::parse(name, text, is_quick)).collect()
    }

    /// The panels, in order.
    #[must_use]
    pub fn panels(&self) -> Vec<&str> {
        let mut panels: Vec<&str> = Vec::new();
        for series in &self.series {
            if !panels.contains(&series.panel.as_str()) {
                panels.push(&series.panel);
            }
        }
        panels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_whole_and_has_a_small_version() {
        for (full, quick) in Experiment::all(false).unwrap().iter().zip(Experiment::all(true).unwrap()) {
            assert!(full.seeds >= 10, "{}", full.name);
            let rounds = |experiment: &Experiment| -> u64 {
                let rounds = experiment.series.iter().map(|series| u64::from(series.setting.rounds));
                experiment.seeds * rounds.sum::<u64>()
            };
            assert!(20 * rounds(&quick) < rounds(full), "{}", full.name);
        }
    }
}
