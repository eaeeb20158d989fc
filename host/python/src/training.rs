//! Training on the thread of a run.

use crate::run_thread::{EndedRun, RowCollector};
use fabswarm_data::Cache;
use fabswarm_large::device::Device;
use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::device::cuda::{Cuda, Precision};
use fabswarm_large::training::report::{self, TrainingReport};
use fabswarm_large::training::{
    Error, Evaluation, TrainingObserver, TrainingPlan, TrainingRound, TrainingSetup, setup,
};
use fabswarm_sim::record::{self, RunFolder};
use fabswarm_sim::scenario::ResolvedScenario;
use std::path::Path;
use std::sync::Arc;

/// Trains the swarm of a scenario, in a folder as the command does.
pub(crate) fn run(
    mut resolved: ResolvedScenario,
    device: &str,
    precision: &str,
    rows: RowCollector,
) -> Result<EndedRun, String> {
    let precision =
        Precision::named(precision).ok_or_else(|| no_word("precision", precision, "f32, tf32 or bf16"))?;
    let gpu = match device {
        "cpu" => None,
        "cuda" => Some(Cuda::new(precision).map_err(|error| error.to_string())?),
        "auto" => Cuda::new(precision).ok(),
        other => return Err(no_word("device", other, "auto, cpu or cuda")),
    };
    setup::make_paths_absolute(&mut resolved);
    match gpu {
        Some(gpu) => train(gpu, &resolved, rows),
        None => train(Cpu::<f32>::new(), &resolved, rows),
    }
    .map_err(|error| error.to_string())
}

fn no_word(key: &str, value: &str, words: &str) -> String {
    format!("{key} = \"{value}\" is not a valid choice\nhelp: choose {words}")
}

fn train<D: Device<Scalar = f32>>(
    device: D,
    resolved: &ResolvedScenario,
    rows: RowCollector,
) -> Result<EndedRun, Error> {
    let scenario = &resolved.scenario;
    let out = Path::new(&scenario.output.out);
    if !out.as_os_str().is_empty() {
        // Before the data are loaded, which can take long.
        RunFolder::check_is_free(out)?;
    }
    let prepared = TrainingSetup::new(&Cache::from_environment(), scenario)?;
    let mut trainer = TrainingPlan::new(device, &prepared, resolved)?.start(None)?;
    let folder = match out.as_os_str().is_empty() {
        true => RunFolder::numbered(Path::new("runs"), "train")?,
        false => RunFolder::at(out)?,
    };
    let report = TrainingReport::start(&folder, resolved, None)?;
    rows.begin();
    let interrupted = Arc::clone(&rows.interrupted);
    let mut observer = EvaluationObserver { report, rows };
    let outcome = trainer.run(Some(&folder), &mut observer, &interrupted)?;
    let EvaluationObserver { report, rows } = observer;
    report.finish(&folder, resolved, &prepared, &outcome)?;
    let summary = folder.path().join("summary.json");
    let unreadable = |source| record::Error::Unusable { path: summary.clone(), source };
    Ok(EndedRun {
        columns: rows.columns,
        answer: None,
        summary: std::fs::read_to_string(&summary).map_err(unreadable)?,
        complaint: outcome.complaint(scenario, prepared.chance_baseline(), trainer.checkpointed()),
        folder: Some(folder.path().to_owned()),
    })
}

/// Records evaluations, and takes them as rows.
struct EvaluationObserver {
    report: TrainingReport,
    rows: RowCollector,
}

impl TrainingObserver for EvaluationObserver {
    fn round(&mut self, _: TrainingRound<'_>) {}

    fn evaluated(&mut self, evaluation: &Evaluation) -> Result<(), record::Error> {
        self.report.add(evaluation)?;
        let row = report::values(evaluation).map(|(name, value)| (name, value.unwrap_or(f64::NAN)));
        self.rows.take(row.collect(), None);
        Ok(())
    }
}
