//! Experiments on small problems: a method of the paper in a setting, with given or searched steps.

mod cell;
mod measure;
mod outcome;
mod page;

pub(crate) use measure::{ErrorCondition, ErrorMeasure};
pub(crate) use outcome::{MethodOutcome, Point, RunOutcome};

use std::sync::atomic::AtomicBool;

use fabswarm_diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::experiment_config::ExperimentConfig;
use crate::method::{MethodKind, StepSizes};
use crate::spread::Spread;
use crate::workload::{Keys, SeriesFile, Workload};
use cell::MethodCell;

/// The horizontal axis of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Axis {
    /// Iterations: rounds, or outer iterations of a double loop.
    Iterations,
    Rounds,
    /// Floats that crossed links.
    Floats,
    /// Seconds on one core.
    Seconds,
}

/// Steps that are tried for every method alike.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepGrid {
    pub(crate) upper: Vec<f64>,
    /// Steps on y, z and v; methods of one level have none.
    pub(crate) lower: Vec<f64>,
    /// Seeds that are tried on; others than those that count.
    pub(crate) seeds: Vec<u64>,
    pub(crate) rounds: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MethodWorkload {
    pub(crate) method: MethodKind,
    /// Its steps; the best of the grid where they are not given.
    pub(crate) steps: Option<StepSizes>,
    pub(crate) setting: ExperimentConfig,
    pub(crate) paper: Option<String>,
    /// Mean rounds to one per cent of an independent implementation.
    pub(crate) reference: Option<f64>,
}

impl Workload for MethodWorkload {
    type Axis = Axis;
    type Search = StepGrid;
    type Choice = StepSizes;
    type Cell = MethodCell;
    type Measure = ErrorMeasure;
    type Condition = ErrorCondition;
    type Point = Point;
    type Run = RunOutcome;

    const FILES: &'static [(&'static str, &'static str)] = &[
        ("rates", include_str!("../experiments/rates.toml")),
        ("policy-evaluation", include_str!("../experiments/policy-evaluation.toml")),
        ("policy-evaluation-noise", include_str!("../experiments/policy-evaluation-noise.toml")),
        ("policy-evaluation-printed", include_str!("../experiments/policy-evaluation-printed.toml")),
        ("policy-evaluation-100", include_str!("../experiments/policy-evaluation-100.toml")),
        ("policy-evaluation-1000", include_str!("../experiments/policy-evaluation-1000.toml")),
        ("speed-up", include_str!("../experiments/speed-up.toml")),
        ("connectivity", include_str!("../experiments/connectivity.toml")),
        ("agents", include_str!("../experiments/agents.toml")),
        ("weights", include_str!("../experiments/weights.toml")),
        ("rings", include_str!("../experiments/rings.toml")),
        ("integrations", include_str!("../experiments/integrations.toml")),
        ("sensitivity", include_str!("../experiments/sensitivity.toml")),
        ("lost-frames", include_str!("../experiments/lost-frames.toml")),
        ("factors", include_str!("../experiments/factors.toml")),
    ];
    const RUNS_ALONE: bool = false;

    fn parse(row: &SeriesFile, settings: Keys, _: &StepGrid) -> Result<(String, Self), String> {
        let method = row.method.ok_or("a series without a method")?;
        let label = row.label.clone().unwrap_or_else(|| method.label().to_owned());
        let setting =
            serde_json::from_value(Value::Object(settings)).map_err(|error| format!("{label}: {error}"))?;
        let (paper, reference) = (row.paper.clone(), row.reference);
        Ok((label, Self { method, steps: row.steps, setting, paper, reference }))
    }

    fn given(&self) -> Option<StepSizes> {
        self.steps
    }

    /// Every pair of steps for a bilevel method, every upper step for one of one level.
    fn options(&self, grid: &StepGrid) -> Vec<StepSizes> {
        let lower: &[f64] = if self.method.is_bilevel() { &grid.lower } else { &[0.0] };
        let pairs = grid.upper.iter().flat_map(|&upper| lower.iter().map(move |&lower| (upper, lower)));
        pairs.map(|(upper, lower)| StepSizes { upper, lower, twin: None }).collect()
    }

    fn search_seeds(grid: &StepGrid) -> &[u64] {
        &grid.seeds
    }

    fn trial(&self, steps: &StepSizes, seed: u64, grid: &StepGrid) -> MethodCell {
        let mut cell = self.cell(steps, seed);
        cell.setting.rounds = grid.rounds.min(cell.setting.rounds);
        cell
    }

    /// The settled error and the mean error of the whole run, as a geometric mean: of steps that settle alike, the fastest win.
    fn score(runs: &[RunOutcome]) -> f64 {
        let score = |run: &RunOutcome| (run.settled_error().ln() + run.mean_log_error()) / 2.0;
        Spread::of(runs.iter().map(score)).mean.exp()
    }

    fn cell(&self, steps: &StepSizes, seed: u64) -> MethodCell {
        MethodCell { method: self.method, setting: self.setting.clone(), steps: *steps, seed }
    }

    fn effort(cell: &MethodCell) -> u64 {
        cell.setting.agents as u64 * u64::from(cell.setting.rounds)
    }

    fn run(cell: &MethodCell, interrupted: &AtomicBool) -> Result<Option<RunOutcome>, Diagnostic> {
        cell.run(interrupted).map_err(|error| Diagnostic::bare(error.to_string()))
    }

    fn points(run: &RunOutcome) -> &[Point] {
        &run.points
    }

    fn has_moved(one: &MethodOutcome) -> bool {
        !(0.9..1.1).contains(&one.settled_error().mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn every_file_is_whole_and_has_a_small_version() {
        let all = |is_quick| Experiment::<MethodWorkload>::all(is_quick).unwrap();
        for (full, quick) in all(false).iter().zip(all(true)) {
            assert!(full.seeds >= 5, "{}", full.name);
            let rounds = |experiment: &Experiment<MethodWorkload>| -> u64 {
                let rounds = experiment.series.iter().map(|series| u64::from(series.work.setting.rounds));
                experiment.seeds * rounds.sum::<u64>()
            };
            assert!(20 * rounds(&quick) < rounds(full), "{}", full.name);
        }
    }
}
