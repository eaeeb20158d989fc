//! Figures and tables of an experiment with large models.

use fabswarm_plot::{LinePoint, PlotLine, Scale};
use serde_json::Value;

use super::{Chart, KeySearch, TrainingPoint, TrainingSeries, TrainingWorkload};
use crate::experiment::{Experiment, ExperimentOutcome, SearchTrial};
use crate::page::{Column, Presentation};
use crate::spread::Spread;
use crate::workload::Keys;

impl Presentation for TrainingWorkload {
    const TRIALS_FILE: &'static str = "search.csv";
    const TRIAL_COLUMNS: &'static str = "values,test_accuracy";
    const CURVE_COLUMNS: &'static str =
        "seed,round,epoch,seconds,sent_bytes,test_accuracy,cleaning_auc,regularisation";
    const COLUMNS: &'static [Column<Self>] = &[
        ("chosen", |one, search| chosen(&one.choice, search)),
        ("test accuracy", |one, _| {
            let accuracy = one.accuracy();
            format!("{:.3} ± {:.3}", accuracy.mean, accuracy.deviation)
        }),
        ("AUC of weights", |one, _| number(one.mean(|run| run.last().auc), 3)),
        ("regularisation", |one, _| number(one.mean(|run| run.last().regularisation), 5)),
        ("MB sent per round", |one, _| {
            number(one.mean(|run| Some(run.last().bytes as f64 / f64::from(run.last().round) / 1e6)), 2)
        }),
        ("MiB of memory", |one, _| {
            number(one.mean(|run| Some(run.memory_bytes? as f64 / f64::from(1 << 20))), 0)
        }),
        ("rounds/s", |one, _| {
            number(one.mean(|run| Some(f64::from(run.last().round) / run.last().seconds.max(1e-9))), 0)
        }),
        ("diverged", |one, _| {
            format!("{} of {}", one.runs.iter().filter(|run| run.has_diverged).count(), one.runs.len())
        }),
    ];

    fn notes(experiment: &Experiment<Self>, outcome: &ExperimentOutcome<Self>) -> Vec<String> {
        let first = outcome.series.first().and_then(|series| series.runs.first());
        let mut notes: Vec<String> =
            first.map(|run| format!("Trained on {}.", run.device)).into_iter().collect();
        let search = &experiment.search;
        let is_searched =
            |key: &String| experiment.series.iter().any(|series| series.work.search.contains(key));
        let grids = search.values.iter().filter(|(key, _)| is_searched(key)).map(|(key, values)| {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            format!("{key} in {}", values.join(", "))
        });
        let grids: Vec<String> = grids.collect();
        if !grids.is_empty() {
            let seeds: Vec<String> = search.seeds.iter().map(u64::to_string).collect();
            notes.push(format!(
                "Searched for every method {}, in runs of {} epoch{} on seeds {}, which do not count below: {}. The most accurate won.",
                search.panel.as_ref().map_or("and panel by itself".to_owned(), |panel| format!("in the panel {panel}")),
                search.epochs,
                if search.epochs == 1 { "" } else { "s" },
                seeds.join(", "),
                grids.join("; ")
            ));
        }
        notes
    }

    fn curve(outcome: &TrainingSeries, chart: Chart) -> Vec<LinePoint> {
        let place = |point: &TrainingPoint| match chart {
            Chart::Epochs | Chart::Regularisation => point.epoch,
            Chart::Seconds => point.seconds,
            Chart::Bytes => point.bytes as f64,
        };
        let value = |point: &TrainingPoint| match chart {
            Chart::Regularisation => point.regularisation,
            _ => Some(point.accuracy),
        };
        let point = |points: Vec<TrainingPoint>| {
            let values: Option<Vec<f64>> = points.iter().map(value).collect();
            let Spread { mean, deviation } = Spread::of(values?.into_iter());
            let x = Spread::of(points.iter().map(place)).mean;
            Some(LinePoint { x, y: mean, low: mean - deviation, high: mean + deviation })
        };
        outcome.samples().into_iter().filter_map(point).collect()
    }

    fn scale(chart: Chart, lines: &[PlotLine]) -> (&'static str, Scale) {
        let values = lines.iter().flat_map(|line| &line.points).map(|point| point.low);
        // From a whole tenth.
        let least = (10.0 * values.fold(1.0, f64::min)).floor().clamp(0.0, 9.0) / 10.0;
        let accuracy = Scale::linear("test accuracy", least, 1.0);
        match chart {
            Chart::Epochs => ("epochs", accuracy),
            Chart::Seconds => ("seconds", accuracy),
            Chart::Bytes => ("bytes sent by all agents", accuracy),
            Chart::Regularisation => {
                let values = lines.iter().flat_map(|line| &line.points).map(|point| point.y);
                ("epochs", Scale::linear("learned regularisation", 0.0, 1.1 * values.fold(0.01, f64::max)))
            }
        }
    }

    fn curve_rows(outcome: &TrainingSeries) -> Vec<String> {
        let cell = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let runs = (1..).zip(&outcome.runs);
        let points = runs.flat_map(|(seed, run)| run.points.iter().map(move |point| (seed, point)));
        let row = |(seed, point): (u64, &TrainingPoint)| {
            format!(
                "{seed},{},{},{:.6},{},{},{},{}",
                point.round,
                point.epoch,
                point.seconds,
                point.bytes,
                point.accuracy,
                cell(point.auc),
                cell(point.regularisation)
            )
        };
        points.map(row).collect()
    }

    fn trial_row(trial: &SearchTrial<Self>) -> String {
        let accuracy =
            if trial.score.is_finite() { (-trial.score).to_string() } else { "diverged".to_owned() };
        format!("\"{}\",{accuracy}", chosen(&trial.choice, &KeySearch::default()))
    }
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
}

/// The values that were found best: `eta_y 0.03, regularisation 0.2`, each marked where it is the least or largest that was tried.
fn chosen(keys: &Keys, search: &KeySearch) -> String {
    if keys.is_empty() {
        return "–".to_owned();
    }
    let name =
        |key: &str| key.split(" & ").next().unwrap_or(key).rsplit('.').next().unwrap_or(key).to_owned();
    let mark = |key: &String, value: &Value| {
        let tried = search.values.get(key).map(Vec::as_slice).unwrap_or_default();
        let is_edge = tried.first() == Some(value) || tried.last() == Some(value);
        if is_edge { " (edge of the grid)" } else { "" }
    };
    let one = |(key, value): (&String, &Value)| format!("{} {value}{}", name(key), mark(key, value));
    keys.iter().map(one).collect::<Vec<_>>().join(", ")
}
