//! Runs experiments: searches values, runs every series for every seed, and keeps each result, so that interrupted work goes on
//! where it stopped. Processes with the same folder share the runs.

mod store;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fabswarm_diagnostic::Diagnostic;
use rayon::prelude::*;

use crate::experiment::{Experiment, ExperimentOutcome, SearchTrial};
use crate::workload::{Series, SeriesOutcome, Workload};
use store::Store;

/// Observes the progress of a campaign.
pub trait Progress: Sync {
    /// `cells` more runs are to be done.
    fn expect(&self, cells: u64);
    /// One of them is done; it was run now where `is_new`, and read from disk otherwise.
    fn done(&self, is_new: bool);
    /// The present experiment and series.
    fn now(&self, what: &str);
}

/// Why a campaign ended early.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The user interrupted it; finished results are kept.
    #[error("interrupted; what is done is kept, and the same command goes on from there")]
    Interrupted,
    /// A run failed, or its result cannot be written.
    #[error(transparent)]
    Failed(#[from] Diagnostic),
}

/// Runs an experiment with results kept in `folder`.
pub(crate) fn run<W: Workload>(
    experiment: &Experiment<W>,
    folder: &Path,
    progress: &dyn Progress,
    interrupted: &AtomicBool,
) -> Result<ExperimentOutcome<W>, CampaignError> {
    let campaign = Campaign { experiment, store: Store::open(folder)?, progress, interrupted };
    let trials = campaign.search()?;
    progress.now(&format!("{}: running", experiment.name));
    let mut chosen = Vec::new();
    let mut cells = Vec::new();
    for series in &experiment.series {
        let own = trials.iter().filter(|trial| trial.panel == series.panel && trial.label == series.label);
        let best = || own.min_by(|a, b| a.score.total_cmp(&b.score)).map(|best| best.choice.clone());
        let nothing =
            || Diagnostic::bare(format!("{}: {} has no values to try", experiment.name, series.label));
        let choice = series.work.given().or_else(best).ok_or_else(nothing)?;
        cells.extend((1..=experiment.seeds).map(|seed| (series, series.work.cell(&choice, seed))));
        chosen.push(choice);
    }
    let runs = campaign.run_all(&cells)?;
    let outcomes = experiment.series.iter().zip(chosen).zip(runs.chunks(experiment.seeds as usize));
    let series = outcomes.map(|((series, choice), runs)| SeriesOutcome {
        series: series.clone(),
        choice,
        runs: runs.to_vec(),
    });
    Ok(ExperimentOutcome { series: series.collect(), trials })
}

/// An experiment that is being run.
struct Campaign<'a, W: Workload> {
    experiment: &'a Experiment<W>,
    store: Store,
    progress: &'a dyn Progress,
    interrupted: &'a AtomicBool,
}

impl<W: Workload> Campaign<'_, W> {
    /// Tries all values of all series that are to be searched.
    fn search(&self) -> Result<Vec<SearchTrial<W>>, CampaignError> {
        let Experiment { name, search, series, .. } = self.experiment;
        self.progress.now(&format!("{name}: searching steps"));
        let seeds = W::search_seeds(search);
        let (mut trials, mut cells) = (Vec::new(), Vec::new());
        for series in series.iter().filter(|series| series.work.given().is_none()) {
            for choice in series.work.options(search) {
                cells
                    .extend(seeds.iter().map(|&seed| (series, series.searched.trial(&choice, seed, search))));
                let (panel, label) = (series.panel.clone(), series.label.clone());
                trials.push(SearchTrial { panel, label, choice, score: f64::NAN });
            }
        }
        let runs = self.run_all(&cells)?;
        for (trial, runs) in trials.iter_mut().zip(runs.chunks(seeds.len().max(1))) {
            trial.score = W::score(runs);
        }
        Ok(trials)
    }

    /// Results in the order of `cells`.
    fn run_all(&self, cells: &[(&Series<W>, W::Cell)]) -> Result<Vec<W::Run>, CampaignError> {
        self.progress.expect(cells.len() as u64);
        // Longer cells first, so that no core waits for a long one at the end.
        let mut left: Vec<usize> = (0..cells.len()).collect();
        left.sort_by_key(|&at| std::cmp::Reverse(W::effort(&cells[at].1)));
        let mut runs = vec![None; cells.len()];
        // What another process runs comes last: most of it is done by then.
        for waits in [false, true] {
            let one = |at: &usize| {
                let (series, cell) = &cells[*at];
                if W::RUNS_ALONE {
                    self.progress
                        .now(&format!("{}: {} {}", self.experiment.name, series.panel, series.label));
                }
                self.one(cell, waits).map(|run| (*at, run))
            };
            let done: Result<Vec<_>, _> = if W::RUNS_ALONE {
                left.iter().map(one).collect()
            } else {
                left.par_iter().with_max_len(1).map(one).collect()
            };
            done?.into_iter().for_each(|(at, run)| runs[at] = run);
            left.retain(|&at| runs[at].is_none());
        }
        Ok(runs.into_iter().flatten().collect())
    }

    /// One result: the kept one, or that of a run. `None` where another process runs it, and this one does not wait.
    fn one(&self, cell: &W::Cell, waits: bool) -> Result<Option<W::Run>, CampaignError> {
        let mut claim = None;
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(CampaignError::Interrupted);
            }
            if let Some(run) = self.store.read(cell) {
                self.progress.done(false);
                return Ok(Some(run));
            }
            if claim.is_some() {
                let run = W::run(cell, self.interrupted)?.ok_or(CampaignError::Interrupted)?;
                self.store.keep(cell, &run)?;
                self.progress.done(true);
                return Ok(Some(run));
            }
            claim = self.store.claim(cell)?;
            if claim.is_none() {
                if !waits {
                    return Ok(None);
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}
