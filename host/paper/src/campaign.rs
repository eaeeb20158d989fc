//! Runs experiments: searches steps, runs every series for every seed on all cores, and keeps each result, so that interrupted
//! work goes on where it stopped.

mod cell;
mod store;

#[cfg(feature = "large")]
pub(crate) use store::Store;
pub use store::StoreError;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::experiment::{Experiment, Grid, Series, StepChoice};
use crate::method::StepSizes;
use crate::outcome::{RunOutcome, SeriesOutcome, Spread};
use cell::Cell;
#[cfg(not(feature = "large"))]
use store::Store;

/// Is told how far a campaign has come.
pub trait Progress: Sync {
    /// `cells` more runs are to be done.
    fn expect(&self, cells: u64);
    /// One of them is done; it was run now where `is_new`, and read from disk otherwise.
    fn done(&self, is_new: bool);
    /// What is being run now.
    fn now(&self, what: &str);
}

/// Why a campaign ended early.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The user interrupted it; what is done is kept.
    #[error("interrupted; what is done is kept, and the same command goes on from there")]
    Interrupted,
    /// A result cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A large model cannot be trained.
    #[error("{0}")]
    Training(String),
    /// A swarm cannot be built.
    #[error(transparent)]
    Build(#[from] fabswarm_sim::trial::BuildError),
}

/// One try of the grid.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The panel.
    pub panel: String,
    /// The series.
    pub label: String,
    /// The steps that were tried.
    pub steps: StepSizes,
    /// Where it settled, as a geometric mean over the seeds that were tried.
    pub error: f64,
}

/// Everything an experiment came to.
#[derive(Clone, Debug)]
pub struct ExperimentOutcome {
    /// All series, in the order of the experiment.
    pub series: Vec<SeriesOutcome>,
    /// All tries of the grid.
    pub trials: Vec<Trial>,
}

/// Runs an experiment with results kept in `folder`.
///
/// # Errors
/// Where it is interrupted, a result cannot be written, or a swarm cannot be built.
pub fn run(
    experiment: &Experiment,
    folder: &Path,
    progress: &impl Progress,
    interrupted: &AtomicBool,
) -> Result<ExperimentOutcome, CampaignError> {
    let store = Store::open(folder)?;
    let one = |cell: &Cell| -> Result<RunOutcome, CampaignError> {
        if interrupted.load(Ordering::Relaxed) {
            return Err(CampaignError::Interrupted);
        }
        let known = store.read(cell).filter(|run: &RunOutcome| !run.points.is_empty());
        let is_new = known.is_none();
        let outcome = match known {
            Some(outcome) => outcome,
            None => {
                let outcome = cell.run(interrupted)?.ok_or(CampaignError::Interrupted)?;
                store.keep(cell, &outcome)?;
                outcome
            }
        };
        progress.done(is_new);
        Ok(outcome)
    };
    let all = |cells: &[Cell]| -> Result<Vec<RunOutcome>, CampaignError> {
        progress.expect(cells.len() as u64);
        // Longer cells first, so that no core waits for a long one at the end; results in the order of `cells`.
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(cells[at].effort()));
        let runs = order.par_iter().with_max_len(1).map(|&at| one(&cells[at]).map(|run| (at, run)));
        let mut runs = runs.collect::<Result<Vec<_>, _>>()?;
        runs.sort_by_key(|(at, _)| *at);
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    };

    progress.now(&format!("{}: searching steps", experiment.name));
    let searched: Vec<&Series> =
        experiment.series.iter().filter(|series| series.steps == StepChoice::Search).collect();
    let mut tries = Vec::new();
    for series in &searched {
        for steps in grid_points(&experiment.grid, series) {
            for &seed in &experiment.grid.seeds {
                let mut cell = Cell::new(series, steps, seed);
                cell.setting.rounds = experiment.grid.rounds.min(cell.setting.rounds);
                tries.push((series, cell));
            }
        }
    }
    let cells: Vec<Cell> = tries.iter().map(|(_, cell)| cell.clone()).collect();
    let runs = all(&cells)?;
    let mut trials: Vec<Trial> = Vec::new();
    // An experiment without a search has a grid without seeds.
    let seeds = experiment.grid.seeds.len().max(1);
    for (tries, runs) in tries.chunks(seeds).zip(runs.chunks(seeds)) {
        let (series, cell) = &tries[0];
        let logs = runs.iter().map(|run| run.settled_error().ln());
        let error = Spread::of(logs).mean.exp();
        trials.push(Trial {
            panel: series.panel.clone(),
            label: series.label.clone(),
            steps: cell.steps,
            error,
        });
    }

    progress.now(&format!("{}: running", experiment.name));
    let chosen: Vec<(StepSizes, bool)> =
        experiment.series.iter().map(|series| chosen_steps(experiment, series, &trials)).collect();
    let mut cells = Vec::new();
    for (series, (steps, _)) in experiment.series.iter().zip(&chosen) {
        cells.extend((1..=experiment.seeds).map(|seed| Cell::new(series, *steps, seed)));
    }
    let runs = all(&cells)?;
    let outcomes = experiment.series.iter().zip(chosen).zip(runs.chunks(experiment.seeds as usize));
    let series = outcomes
        .map(|((series, (steps, is_inside_grid)), runs)| SeriesOutcome {
            series: series.clone(),
            steps,
            is_inside_grid,
            runs: runs.to_vec(),
        })
        .collect();
    Ok(ExperimentOutcome { series, trials })
}

/// Every pair of steps for a bilevel method, every upper step for one of one level.
fn grid_points(grid: &Grid, series: &Series) -> Vec<StepSizes> {
    let lower: &[f64] = if series.method.is_bilevel() { &grid.lower } else { &[0.0] };
    let pairs = grid.upper.iter().flat_map(|&upper| lower.iter().map(move |&lower| (upper, lower)));
    pairs.map(|(upper, lower)| StepSizes { upper, lower, twin: None }).collect()
}

/// The given steps, or the best of the grid and whether they lie inside it.
fn chosen_steps(experiment: &Experiment, series: &Series, trials: &[Trial]) -> (StepSizes, bool) {
    if let StepChoice::Fixed(steps) = series.steps {
        return (steps, true);
    }
    let own = trials.iter().filter(|trial| trial.panel == series.panel && trial.label == series.label);
    let best = own.min_by(|a, b| a.error.total_cmp(&b.error));
    let steps = best.map_or(StepSizes { upper: 0.0, lower: 0.0, twin: None }, |best| best.steps);
    let is_inside = |steps: &[f64], step: f64| {
        steps.first() != Some(&step) && steps.last() != Some(&step) || !steps.contains(&step)
    };
    (steps, is_inside(&experiment.grid.upper, steps.upper) && is_inside(&experiment.grid.lower, steps.lower))
}
