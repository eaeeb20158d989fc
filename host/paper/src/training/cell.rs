//! One run: a scenario and a seed.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use fabswarm_data::Cache;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::device::cuda::{Cuda, Precision};
use fabswarm_large::device::{Device, MemoryUse};
use fabswarm_large::training::{Evaluation, TrainingObserver, TrainingPlan, TrainingRound, TrainingSetup};
use fabswarm_sim::record::{self, StoppedBecause};
use fabswarm_sim::scenario::{Flag, ResolvedScenario, ScenarioCommand, keys, resolve_for};
use serde::Serialize;
use serde_json::Value;

use super::outcome::{TrainingPoint, TrainingRunOutcome};
use crate::workload::Keys;

/// Whether there is a GPU that works, which is tried once.
pub(super) fn has_gpu() -> bool {
    static HAS_GPU: OnceLock<bool> = OnceLock::new();
    *HAS_GPU.get_or_init(|| Cuda::new(Precision::default()).is_ok())
}

/// The inputs of a result, besides the build.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TrainingCell {
    pub(super) keys: Keys,
    pub(super) seed: u64,
    /// The name of the precision on a GPU; without one the CPU trains.
    pub(super) gpu: Option<&'static str>,
}

impl TrainingCell {
    pub(super) fn resolve(&self) -> Result<ResolvedScenario, Diagnostic> {
        let mut flags = Vec::new();
        let seed = ("seed".to_owned(), Value::from(self.seed));
        for (names, value) in self.keys.iter().chain([(&seed.0, &seed.1)]) {
            for path in names.split(" & ") {
                let key = keys().iter().find(|key| key.path == path);
                let key = key.ok_or_else(|| Diagnostic::bare(format!("there is no key {path}")))?;
                flags.push(Flag { key, value: toml(value) });
            }
        }
        resolve_for(ScenarioCommand::Train, None, &flags).map_err(failed)
    }

    /// Trains; `None` where it was interrupted.
    pub(super) fn run(&self, interrupted: &AtomicBool) -> Result<Option<TrainingRunOutcome>, Diagnostic> {
        let resolved = self.resolve()?;
        match self.gpu {
            Some(precision) => {
                let precision = Precision::named(precision).unwrap_or_default();
                let gpu = Cuda::new(precision).map_err(failed)?;
                train(gpu, &resolved, interrupted)
            }
            None => train(Cpu::<f32>::new(), &resolved, interrupted),
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::bare(error.to_string())
}

/// A value of an experiment's file, as a scenario takes it.
fn toml(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(is_so) => (*is_so).into(),
        Value::Number(number) => match number.as_i64() {
            Some(count) => count.into(),
            None => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

fn train<D: Device<Scalar = f32>>(
    device: D,
    resolved: &ResolvedScenario,
    interrupted: &AtomicBool,
) -> Result<Option<TrainingRunOutcome>, Diagnostic> {
    let prepared = TrainingSetup::new(&Cache::from_environment(), &resolved.scenario).map_err(failed)?;
    let name = device.name();
    let mut trainer =
        TrainingPlan::new(device, &prepared, resolved).and_then(|plan| plan.start(None)).map_err(failed)?;
    let mut evaluations = Evaluations(Vec::new());
    let (stopped_because, _) = trainer.advance(None, &mut evaluations, interrupted).map_err(failed)?;
    if stopped_because == StoppedBecause::Interrupted {
        return Ok(None);
    }
    let memory_bytes = trainer.memory_use().map(|used| match used {
        MemoryUse::PeakResident(bytes) | MemoryUse::OnDevice(bytes) => bytes,
    });
    Ok(Some(TrainingRunOutcome {
        points: evaluations.0,
        has_diverged: stopped_because == StoppedBecause::Diverged,
        memory_bytes,
        device: name,
    }))
}

struct Evaluations(Vec<TrainingPoint>);

impl TrainingObserver for Evaluations {
    fn round(&mut self, _: TrainingRound<'_>) {}

    fn evaluated(&mut self, now: &Evaluation) -> Result<(), record::Error> {
        self.0.push(TrainingPoint {
            round: now.round,
            epoch: now.epoch,
            seconds: now.seconds,
            bytes: now.sent_bytes,
            accuracy: now.test.accuracy,
            auc: now.cleaning.and_then(|cleaning| cleaning.auc),
            regularisation: now.strength,
        });
        Ok(())
    }
}
