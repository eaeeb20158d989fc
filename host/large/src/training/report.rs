//! The files of a training run.
//!
//! | file | what |
//! |---|---|
//! | `scenario.toml` | the resolved scenario, to resume the run or to run it again |
//! | `metrics.csv` | a row for every evaluation; the same bytes for the same scenario and seed |
//! | `times.csv` | how many seconds each of these rows came after the start, how long a round took, and the memory used |
//! | `events.out.tfevents.*` | both, for TensorBoard |
//! | `checkpoint.safetensors` | the whole state, to resume from |
//! | `weights.csv`, `weights.svg` | the learned weight of every training sample |
//! | `summary.json`, `model.safetensors` | what came of it |

use super::events::Events;
use super::metrics_table::{BEGIN_ANEW, MetricValue, beginning, row};
use super::summary::TrainingSummary;
use super::{Error, Evaluation, TrainingOutcome, TrainingSetup, model_file, weights};
use crate::device::MemoryUse;
use fabswarm_sim::record::{self, GrowingFile, RunFolder, StoppedBecause};
use fabswarm_sim::scenario::ResolvedScenario;

/// The resolved scenario, to resume the run or to run it again.
pub const SCENARIO_FILE: &str = "scenario.toml";
const METRICS: &str = "metrics.csv";
const TIMES: &str = "times.csv";

/// A column's name and where its values come from.
type ReportColumn = (&'static str, fn(&Evaluation) -> MetricValue);

const COLUMNS: [ReportColumn; 15] = [
    ("round", |now| MetricValue::Count(now.round.into())),
    ("epoch", |now| MetricValue::Number(now.epoch)),
    ("test_accuracy", |now| MetricValue::Number(now.test.accuracy)),
    ("test_loss", |now| MetricValue::Number(now.test.loss)),
    ("consensus_error", |now| MetricValue::Number(now.consensus_error)),
    ("cleaning_auc", |now| now.cleaning.and_then(|cleaning| cleaning.auc).into()),
    ("cleaning_precision", |now| now.cleaning.and_then(|cleaning| cleaning.precision).into()),
    ("cleaning_recall", |now| now.cleaning.and_then(|cleaning| cleaning.recall).into()),
    ("mean_weight_corrupted", |now| now.cleaning.and_then(|cleaning| cleaning.mean_weight_corrupted).into()),
    ("mean_weight_clean", |now| now.cleaning.and_then(|cleaning| cleaning.mean_weight_clean).into()),
    ("regularisation", |now| now.strength.into()),
    ("frames_sent", |now| MetricValue::Count(now.frames.sent)),
    ("sent_bytes", |now| MetricValue::Count(now.sent_bytes)),
    ("copies_lost", |now| MetricValue::Count(now.frames.lost)),
    ("copies_refused", |now| MetricValue::Count(now.frames.refused)),
];

/// Times differ from run to run, so they have their own table.
const TIME_COLUMNS: [ReportColumn; 4] = [
    COLUMNS[0],
    ("seconds", |now| MetricValue::Number(now.seconds)),
    ("round_seconds", |now| now.round_seconds.into()),
    ("memory_bytes", |now| match now.memory {
        Some(MemoryUse::PeakResident(bytes) | MemoryUse::OnDevice(bytes)) => MetricValue::Count(bytes),
        None => MetricValue::Absent,
    }),
];

/// The values of an evaluation, by the names of `metrics.csv` and `times.csv`; the round comes first.
pub fn values(evaluation: &Evaluation) -> impl Iterator<Item = (&'static str, Option<f64>)> {
    COLUMNS.iter().chain(&TIME_COLUMNS[1..]).map(move |(name, value)| {
        let value = match value(evaluation) {
            MetricValue::Count(count) => Some(count as f64),
            MetricValue::Number(value) => Some(value),
            MetricValue::Absent => None,
        };
        (*name, value)
    })
}

/// The text of `summary.json`.
pub fn summary_json(resolved: &ResolvedScenario, outcome: &TrainingOutcome) -> String {
    TrainingSummary::of(resolved, outcome).to_json()
}

/// The files of a run that grow with it.
#[derive(Debug)]
pub struct TrainingReport {
    metrics: GrowingFile,
    times: GrowingFile,
    events: Events,
}

impl TrainingReport {
    /// Starts the files of `folder`, or goes on with them at round `resumed`.
    ///
    /// # Errors
    /// When they cannot be written, are not of this version, or have lost rows.
    pub fn start(
        folder: &RunFolder,
        resolved: &ResolvedScenario,
        resumed: Option<u32>,
    ) -> Result<Self, Error> {
        let names = |columns: &[ReportColumn]| columns.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        let metrics = beginning(folder, METRICS, &names(&COLUMNS), resumed)?;
        let times = beginning(folder, TIMES, &names(&TIME_COLUMNS), resumed)?;
        if !rounds(&metrics).eq(rounds(&times)) {
            let what = format!("{METRICS} and {TIMES} have rows of different rounds");
            return Err(Error::resume(folder.path(), what, BEGIN_ANEW));
        }
        folder.write(SCENARIO_FILE, resolved.to_repeatable_toml().as_bytes())?;
        Ok(TrainingReport {
            metrics: folder.growing_file_from(METRICS, &metrics)?,
            times: folder.growing_file_from(TIMES, &times)?,
            events: Events::new(folder.path(), resumed)?,
        })
    }

    /// Adds an evaluation.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, evaluation: &Evaluation) -> Result<(), record::Error> {
        self.metrics.append(row(COLUMNS.map(|(_, value)| value(evaluation))).as_bytes())?;
        self.times.append(row(TIME_COLUMNS.map(|(_, value)| value(evaluation))).as_bytes())?;
        let scalars = values(evaluation).skip(1).filter_map(|(name, value)| Some((name, value?)));
        self.events.scalars(evaluation.round, scalars)
    }

    /// Completes the tables, and writes the summary, the mean model and, where samples have weights, how they are spread.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(
        self,
        folder: &RunFolder,
        resolved: &ResolvedScenario,
        prepared: &TrainingSetup,
        outcome: &TrainingOutcome,
    ) -> Result<(), Error> {
        self.metrics.complete()?;
        self.times.complete()?;
        if outcome.stopped_because != StoppedBecause::Diverged {
            if !outcome.weights.is_empty() {
                let svg = weights::draw(&resolved.scenario, outcome);
                folder.write("weights.svg", svg.as_bytes())?;
                weights::write_table(folder, &outcome.weights)?;
            }
            folder.write("model.safetensors", &model_file::bytes(prepared, &resolved.scenario, outcome))?;
        }
        folder.write("summary.json", summary_json(resolved, outcome).as_bytes())?;
        Ok(())
    }
}

/// The first cell of every row.
fn rounds(table: &str) -> impl Iterator<Item = Option<&str>> {
    table.lines().map(|row| row.split(',').next())
}
