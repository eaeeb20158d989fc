//! One run: a method in a setting, with given steps and seed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fabswarm_sim::trial::BuildError;
use serde::Serialize;

use super::outcome::{ONE_PERCENT, Point, RunOutcome};
use crate::experiment_config::ExperimentConfig;
use crate::method::{MethodKind, StepSizes};

/// Samples that a run keeps after its beginning.
const SAMPLES: u32 = 100;
/// Iterations of the beginning, each of which is kept.
const FIRST_ITERATIONS: u32 = 20;
/// An error that no run comes back from.
const BEYOND_BOUNDS: f64 = 1e6;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct MethodCell {
    pub(super) method: MethodKind,
    pub(super) setting: ExperimentConfig,
    pub(super) steps: StepSizes,
    pub(super) seed: u64,
}

impl MethodCell {
    /// Runs it; `None` where it was interrupted.
    pub(super) fn run(&self, interrupted: &AtomicBool) -> Result<Option<RunOutcome>, BuildError> {
        let ExperimentConfig { rounds, stop_below, .. } = self.setting;
        let mut method = self.method.start(&self.setting, self.steps, self.seed)?;
        let mut iterations = 0;
        let mut seconds = 0.0;
        let mut points = Vec::new();
        let mut next_sample = 0;
        let mut one_percent = None;
        loop {
            let measured = method.measure();
            let mut point = Point {
                iterations,
                rounds: method.rounds(),
                floats: method.floats(),
                seconds,
                error: measured.error,
                consensus: measured.consensus,
                stationarity: None,
            };
            let has_diverged = measured.error.is_nan() || measured.error > BEYOND_BOUNDS;
            if one_percent.is_none() && point.error < ONE_PERCENT {
                one_percent = Some(point);
            }
            let is_over = has_diverged || point.rounds >= rounds || point.error < stop_below;
            let is_due = point.rounds >= next_sample;
            if is_due {
                next_sample += (rounds / SAMPLES).max(1);
            }
            if is_over || is_due || iterations <= FIRST_ITERATIONS {
                point.stationarity = method.stationarity();
                points.push(bounded(point));
                if interrupted.load(Ordering::Relaxed) {
                    return Ok(None);
                }
            }
            if is_over {
                return Ok(Some(RunOutcome { points, one_percent, memory: method.memory(), has_diverged }));
            }
            // Measuring is not part of the method, so it is not timed.
            let began = Instant::now();
            method.iterate();
            seconds += began.elapsed().as_secs_f64();
            iterations += 1;
        }
    }
}

/// Infinity and NaN cannot be kept as JSON.
fn bounded(point: Point) -> Point {
    let bound = |value: f64| if value < BEYOND_BOUNDS { value } else { BEYOND_BOUNDS };
    Point {
        error: bound(point.error),
        consensus: bound(point.consensus),
        stationarity: point.stationarity.map(bound),
        ..point
    }
}
