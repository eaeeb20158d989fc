//! What is written of an experiment with large models.

use std::fmt::Write as _;
use std::path::Path;

use super::outcome::{TrainingExperimentOutcome, TrainingSeriesOutcome};
use super::{Keys, TrainingExperiment, figure, verdict};
use crate::page::{PageError, Section, failed, write};
use crate::table::{self, Table};

/// Draws, tabulates and judges an experiment and writes it to `folder`.
///
/// # Errors
/// Where a file cannot be written.
pub fn write_experiment(
    experiment: &TrainingExperiment,
    outcome: &TrainingExperimentOutcome,
    folder: &Path,
) -> Result<Section, PageError> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let svg = figure::svg(experiment, &outcome.series);
    write(&folder.join("figure.svg"), svg.as_bytes())?;
    write(&folder.join("curves.csv"), curves_csv(&outcome.series).as_bytes())?;
    if !outcome.trials.is_empty() {
        write(&folder.join("search.csv"), trials_csv(outcome).as_bytes())?;
    }
    let verdicts = verdict::of(experiment, &outcome.series);
    let section = Section {
        name: experiment.name,
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        notes: notes(experiment, outcome),
        svg: Some(svg),
        verdicts: table::verdicts(&verdicts, experiment.seeds),
        results: results(&outcome.series),
    };
    write(&folder.join("verdict.md"), section.to_markdown().as_bytes())?;
    Ok(section)
}

fn notes(experiment: &TrainingExperiment, outcome: &TrainingExperimentOutcome) -> Vec<String> {
    let mut notes = experiment.notes.clone();
    if let Some(run) = outcome.series.first().and_then(|series| series.runs.first()) {
        notes.push(format!("Trained on {}.", run.device));
    }
    let searched = experiment.series.iter().flat_map(|series| &series.search);
    let mut grids: Vec<String> = searched
        .map(|(key, values)| {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            format!("{key} in {}", values.join(", "))
        })
        .collect();
    grids.sort();
    grids.dedup();
    if !grids.is_empty() {
        notes.push(format!(
            "Searched for every method and panel by itself, {} epochs on seed {}, which does not count below: {}. The most accurate won.",
            experiment.search_epochs,
            experiment.search_seed,
            grids.join("; ")
        ));
    }
    notes
}

/// How each series ended.
fn results(outcomes: &[TrainingSeriesOutcome]) -> Table {
    let mut table = Table::new(&[
        "panel",
        "method",
        "chosen",
        "test accuracy",
        "AUC of weights",
        "regularisation",
        "MB sent per round",
        "MiB of memory",
        "rounds/s",
        "diverged",
    ]);
    for outcome in outcomes {
        let accuracy = outcome.accuracy();
        let text = |value: Option<f64>, digits: usize| {
            value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
        };
        table.rows.push(vec![
            outcome.series.panel.clone(),
            outcome.series.label.clone(),
            chosen(&outcome.chosen),
            format!("{:.3} ± {:.3}", accuracy.mean, accuracy.deviation),
            text(outcome.mean(|run| run.last().auc), 3),
            text(outcome.mean(|run| run.last().regularisation), 5),
            text(outcome.mean(|run| Some(run.last().bytes as f64 / f64::from(run.last().round) / 1e6)), 2),
            text(outcome.mean(|run| Some(run.memory_bytes? as f64 / f64::from(1 << 20))), 0),
            text(outcome.mean(|run| Some(f64::from(run.last().round) / run.last().seconds.max(1e-9))), 0),
            format!(
                "{} of {}",
                outcome.runs.iter().filter(|run| run.has_diverged).count(),
                outcome.runs.len()
            ),
        ]);
    }
    table
}

/// The values that were found best: `eta_y 0.03, regularisation 0.2`.
fn chosen(keys: &Keys) -> String {
    if keys.is_empty() {
        return "–".to_owned();
    }
    let name =
        |key: &str| key.split(" & ").next().unwrap_or(key).rsplit('.').next().unwrap_or(key).to_owned();
    keys.iter().map(|(key, value)| format!("{} {value}", name(key))).collect::<Vec<_>>().join(", ")
}

fn curves_csv(outcomes: &[TrainingSeriesOutcome]) -> String {
    let mut text =
        "panel,method,seed,round,epoch,seconds,sent_bytes,test_accuracy,cleaning_auc,regularisation\n"
            .to_owned();
    for outcome in outcomes {
        for (seed, run) in (1..).zip(&outcome.runs) {
            for point in &run.points {
                let cell = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
                let _ = writeln!(
                    text,
                    "\"{}\",\"{}\",{seed},{},{},{:.6},{},{},{},{}",
                    outcome.series.panel,
                    outcome.series.label,
                    point.round,
                    point.epoch,
                    point.seconds,
                    point.bytes,
                    point.accuracy,
                    cell(point.auc),
                    cell(point.regularisation)
                );
            }
        }
    }
    text
}

fn trials_csv(outcome: &TrainingExperimentOutcome) -> String {
    let mut text = "panel,method,values,test_accuracy\n".to_owned();
    for trial in &outcome.trials {
        let accuracy = trial.accuracy.map_or("diverged".to_owned(), |accuracy| accuracy.to_string());
        let (panel, label, values) = (&trial.panel, &trial.label, chosen(&trial.keys));
        let _ = writeln!(text, "\"{panel}\",\"{label}\",\"{values}\",{accuracy}");
    }
    text
}
