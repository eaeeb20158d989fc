//! Searches values, runs every series for every seed one after the other (a run takes the whole device), and keeps each result.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::cell::{TrainingCell, TrainingDevice};
use super::outcome::{TrainingExperimentOutcome, TrainingRunOutcome, TrainingSeriesOutcome, TrainingTrial};
use super::{Keys, TrainingExperiment, TrainingSeries};
use crate::campaign::{CampaignError, Progress, Store};

/// Runs an experiment on `device` with results kept in `folder`.
///
/// # Errors
/// Where it is interrupted, data are missing, the device fails, or a result cannot be written.
pub fn run(
    experiment: &TrainingExperiment,
    device: TrainingDevice,
    folder: &Path,
    progress: &impl Progress,
    interrupted: &AtomicBool,
) -> Result<TrainingExperimentOutcome, CampaignError> {
    let store = Store::open(folder)?;
    let one = |cell: &TrainingCell| -> Result<TrainingRunOutcome, CampaignError> {
        if interrupted.load(Ordering::Relaxed) {
            return Err(CampaignError::Interrupted);
        }
        let key = (cell, device);
        let known = store.read(&key).filter(|run: &TrainingRunOutcome| !run.points.is_empty());
        let is_new = known.is_none();
        let outcome = match known {
            Some(outcome) => outcome,
            None => {
                let outcome = cell.run(device, interrupted)?.ok_or(CampaignError::Interrupted)?;
                store.keep(&key, &outcome)?;
                outcome
            }
        };
        progress.done(is_new);
        Ok(outcome)
    };

    let tries: Vec<Vec<Keys>> = experiment.series.iter().map(combinations).collect();
    let searched: usize = tries.iter().map(Vec::len).filter(|count| *count > 1).sum();
    progress.expect(searched as u64 + experiment.series.len() as u64 * experiment.seeds);
    let mut outcome = TrainingExperimentOutcome { series: Vec::new(), trials: Vec::new() };
    for (series, tries) in experiment.series.iter().zip(tries) {
        progress.now(&format!("{}: {} {}", experiment.name, series.panel, series.label));
        let chosen = match tries.as_slice() {
            [only] => only.clone(),
            _ => search(experiment, series, tries, &one, &mut outcome.trials)?,
        };
        let runs = (1..=experiment.seeds).map(|seed| one(&TrainingCell::new(series, &chosen, seed)));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        outcome.series.push(TrainingSeriesOutcome { series: series.clone(), chosen, runs });
    }
    Ok(outcome)
}

/// Tries every combination, and returns the most accurate.
fn search(
    experiment: &TrainingExperiment,
    series: &TrainingSeries,
    tries: Vec<Keys>,
    one: &impl Fn(&TrainingCell) -> Result<TrainingRunOutcome, CampaignError>,
    trials: &mut Vec<TrainingTrial>,
) -> Result<Keys, CampaignError> {
    let mut best: (f64, Keys) = (f64::NEG_INFINITY, tries[0].clone());
    for keys in tries {
        let mut short = keys.clone();
        short.insert("training.epochs".to_owned(), experiment.search_epochs.into());
        let run = one(&TrainingCell::new(series, &short, experiment.search_seed))?;
        let accuracy = (!run.has_diverged).then(|| run.last().accuracy);
        if accuracy.is_some_and(|accuracy| accuracy > best.0) {
            best = (accuracy.unwrap_or_default(), keys.clone());
        }
        let (panel, label) = (series.panel.clone(), series.label.clone());
        trials.push(TrainingTrial { panel, label, keys, accuracy });
    }
    Ok(best.1)
}

/// Every combination of the values that are tried; one without any where nothing is.
fn combinations(series: &TrainingSeries) -> Vec<Keys> {
    let mut all = vec![Keys::new()];
    for (key, values) in &series.search {
        let longer = all.iter().flat_map(|keys| {
            values.iter().map(|value| {
                let mut keys = keys.clone();
                keys.insert(key.clone(), value.clone());
                keys
            })
        });
        all = longer.collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_are_combined() {
        let values = |values: &[i32]| values.iter().map(|value| (*value).into()).collect();
        let search = vec![("a".to_owned(), values(&[1, 2])), ("b & c".to_owned(), values(&[3, 4, 5]))];
        let series = TrainingSeries { panel: String::new(), label: String::new(), keys: Keys::new(), search };
        let all = combinations(&series);
        assert_eq!(all.len(), 6);
        assert_eq!((&all[4]["a"], &all[4]["b & c"]), (&2.into(), &4.into()));
    }
}
