//! Metrics of a swarm, seen from outside.

use crate::scenario::{ProblemKind, Scenario};
use crate::task::Task;
use fabswarm_shared::problem::{Problem, Shape};
use fabswarm_shared::scalar::Scalar;
use serde::Serialize;
use std::cell::Cell;

/// The quantity that the error of a run measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// `mean_i ‖x_i − x*‖ / ‖x*‖`, where the solution x* is known.
    DistanceToSolution,
    /// The largest of the relative gradient norms of x, y and z. Those of y and z are relative to the start, that of x to its largest
    /// so far: y and z start from one point, where the gradient of x may vanish.
    GradientNorm,
}

impl ErrorKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::DistanceToSolution, Self::GradientNorm];

    /// The quantity that the error of a run of `scenario` measures.
    pub const fn of(scenario: &Scenario) -> Self {
        match scenario.problem.kind {
            ProblemKind::PolicyEvaluation => Self::DistanceToSolution,
            ProblemKind::HyperTuning
            | ProblemKind::HyperCleaning
            | ProblemKind::SensorTrust
            | ProblemKind::Own => Self::GradientNorm,
        }
    }

    /// Its column in tables of metrics, and its key in messages and in the summary.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DistanceToSolution => "distance_to_solution",
            Self::GradientNorm => "gradient_norm",
        }
    }

    /// The key of the first round in which it is below one per cent.
    pub const fn one_percent_name(self) -> &'static str {
        match self {
            Self::DistanceToSolution => "rounds_to_one_percent_distance",
            Self::GradientNorm => "rounds_to_one_percent_gradient",
        }
    }

    /// The error in words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::DistanceToSolution => "distance to solution",
            Self::GradientNorm => "gradient norm",
        }
    }
}

/// One row of a run's metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Rounds done.
    pub round: u64,
    /// The value of the quantity that [`ErrorKind::of`] the scenario names.
    pub error: f64,
    /// How far agents disagree: `√(mean_i ‖v_i − v̄‖²) / ‖v̄‖` over what they exchange.
    pub consensus_error: f64,
    /// How far trackers are from what they track: `‖Σt − Σd‖ / Σ‖d_i‖`, mass on its way included.
    pub tracking_defect: f64,
    /// Root mean square of ‖x_i‖.
    pub x_norm: f64,
    /// Root mean square of ‖y_i‖.
    pub y_norm: f64,
    /// Root mean square of ‖z_i‖.
    pub z_norm: f64,
    /// Mean of `f_i(x_i, y_i)`; NaN where a user's problem does not compute it.
    pub upper_value: f64,
    /// Mean of `g_i(x_i, y_i)`, without noise; NaN likewise.
    pub lower_value: f64,
}

/// Measures a swarm's packed states.
#[derive(Clone, Debug)]
pub struct Meter {
    shape: Shape,
    solution: Option<Vec<f64>>,
    keeps_x_non_negative: bool,
    /// Whether x has a step; the gradient of an x that rests falls for nobody.
    moves_x: bool,
    /// The scales of the gradient norms of x, y and z.
    gradient_scales: Cell<[f64; 3]>,
}

/// The states that metrics are computed from; packed states hold one agent after the other.
#[derive(Clone, Copy, Debug)]
pub struct States<'a, S> {
    /// The task whose values of f and g are measured.
    pub task: &'a Task<S>,
    /// Packed decisions.
    pub v: &'a [S],
    /// Packed last gradients.
    pub d: &'a [S],
    /// The mass missing in the trackers of the whole swarm, word by word: `Σt − Σd`, with all mass that waits on links.
    pub defect: &'a [f64],
}

impl Meter {
    /// A ruler for this task; `x_step` is the step on x.
    pub fn new<S: Scalar>(task: &Task<S>, x_step: S) -> Self {
        Self {
            shape: task.shape(),
            solution: task.solution().map(<[f64]>::to_vec),
            keeps_x_non_negative: task.keeps_x_non_negative(),
            moves_x: x_step != S::ZERO,
            gradient_scales: Cell::default(),
        }
    }

    /// Takes the packed decisions and gradients at the start as what later ones are compared with.
    pub fn start<S: Scalar>(&mut self, v: &[S], d: &[S]) {
        self.gradient_scales.set(self.gradient_norms(v, d));
    }

    /// Measures the states after `round` rounds, in the order of agents.
    pub fn measure<S: Scalar>(&self, round: u64, states: States<'_, S>) -> Metrics {
        let words = self.shape.words();
        let agents = (states.v.len() / words) as f64;
        let mut sum = vec![0.0; words];
        let mut squares = vec![0.0; words];
        for v in states.v.chunks_exact(words) {
            for ((sum, square), &word) in sum.iter_mut().zip(&mut squares).zip(v) {
                let word = word.to_f64();
                *sum += word;
                *square += word * word;
            }
        }
        let gradient_norms: f64 = states
            .d
            .chunks_exact(words)
            .map(|d| d.iter().map(|d| d.to_f64().powi(2)).sum::<f64>().sqrt())
            .sum();

        let exchanged = self.shape.exchanged();
        let mean: Vec<f64> = sum[exchanged.clone()].iter().map(|sum| sum / agents).collect();
        let mean_square: f64 = mean.iter().map(|mean| mean * mean).sum();
        // A second walk: the difference of two large squares would hide a small spread.
        let spread: f64 = states
            .v
            .chunks_exact(words)
            .flat_map(|v| v[exchanged.clone()].iter().zip(&mean))
            .map(|(word, mean)| (word.to_f64() - mean).powi(2))
            .sum::<f64>()
            / agents;
        let defect = states.defect.iter().map(|defect| defect * defect).sum::<f64>().sqrt();
        let (x, y, z) = self.shape.split(&squares);
        let root_mean = |squares: &[f64]| (squares.iter().sum::<f64>() / agents).sqrt();
        let [upper_value, lower_value] = self.values(&states).map(|sum| sum / agents);
        Metrics {
            round,
            error: self.error(&states),
            consensus_error: ratio(spread.sqrt(), mean_square.sqrt()),
            tracking_defect: ratio(defect, gradient_norms),
            x_norm: root_mean(x),
            y_norm: root_mean(y),
            z_norm: root_mean(z),
            upper_value,
            lower_value,
        }
    }

    /// The sums over agents of f and g at their own decisions.
    fn values<S: Scalar>(&self, states: &States<'_, S>) -> [f64; 2] {
        let mut scratch = Vec::new();
        let mut sums = [0.0; 2];
        for (agent, v) in states.v.chunks_exact(self.shape.words()).enumerate() {
            let problem = states.task.problem(agent);
            scratch.resize(problem.oracle_words(), S::ZERO);
            let (x, y, _) = self.shape.split(v);
            sums[0] += problem.upper_value(x, y, &mut scratch).to_f64();
            sums[1] += problem.lower_value(x, y, &mut scratch).to_f64();
        }
        sums
    }

    fn error<S: Scalar>(&self, states: &States<'_, S>) -> f64 {
        let Some(solution) = &self.solution else {
            return self.relative_gradient(self.gradient_norms(states.v, states.d));
        };
        let words = self.shape.words();
        let size = solution.iter().map(|x| x * x).sum::<f64>().sqrt();
        let distances: f64 = states
            .v
            .chunks_exact(words)
            .map(|v| v.iter().zip(solution).map(|(x, best)| (x.to_f64() - best).powi(2)).sum::<f64>().sqrt())
            .sum();
        distances / (states.v.len() / words) as f64 / size
    }

    /// The largest of the relative `norms`: one norm of all three would hide x behind y and z, whose gradients start far larger.
    fn relative_gradient(&self, norms: [f64; 3]) -> f64 {
        let mut scales = self.gradient_scales.get();
        scales[0] = scales[0].max(norms[0]);
        // A gradient that vanishes at the start is no measure of later ones.
        for (scale, norm) in scales.iter_mut().zip(norms).filter(|(scale, _)| **scale == 0.0) {
            *scale = norm;
        }
        self.gradient_scales.set(scales);
        if norms.iter().any(|norm| norm.is_nan()) {
            return f64::NAN;
        }
        norms.into_iter().zip(scales).map(|(norm, scale)| ratio(norm, scale)).fold(0.0, f64::max)
    }

    /// The norms of the swarm's gradients of x, y and z: of their means over agents where agents share them, root mean squares
    /// where each keeps its own. Where x must stay at or above zero, only what can still move it counts.
    fn gradient_norms<S: Scalar>(&self, v: &[S], d: &[S]) -> [f64; 3] {
        let words = self.shape.words();
        let agents = (d.len() / words) as f64;
        let mut mean = vec![0.0; words];
        let mut local = 0.0;
        for d in d.chunks_exact(words) {
            for (mean, &d) in mean.iter_mut().zip(d) {
                *mean += d.to_f64() / agents;
            }
            local += d[..self.shape.x].iter().map(|d| d.to_f64().powi(2)).sum::<f64>() / agents;
        }
        if self.keeps_x_non_negative {
            for (word, mean) in mean[..self.shape.x].iter_mut().enumerate() {
                let x = v.chunks_exact(words).map(|v| v[word].to_f64()).sum::<f64>() / agents;
                *mean = mean.min(x);
            }
        }
        let norm = |mean: &[f64]| mean.iter().map(|mean| mean * mean).sum::<f64>().sqrt();
        let (x, y, z) = self.shape.split(&mean);
        let of_x = if self.shape.x_is_local { local.sqrt() } else { norm(x) };
        [if self.moves_x { of_x } else { 0.0 }, norm(y), norm(z)]
    }
}

/// `a / b`, and 0 where there is nothing to compare.
fn ratio(a: f64, b: f64) -> f64 {
    if a == 0.0 { 0.0 } else { a / b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_gradient_of_y_and_z_does_not_hide_that_of_x() {
        let mut scenario = Scenario::default();
        scenario.problem.kind = ProblemKind::SensorTrust;
        let task = Task::<f64>::draw(&scenario);
        let Shape { x, y, .. } = task.shape();
        let v = vec![0.0; x + 2 * y];
        let mut meter = Meter::new(&task, 0.1);
        let mut resting = Meter::new(&task, 0.0);
        let gradient = |of_x: f64, of_yz: f64| [vec![of_x; x], vec![of_yz; 2 * y]].concat();
        meter.start(&v, &gradient(0.0, 100.0));
        resting.start(&v, &gradient(0.0, 100.0));
        let error_of = |meter: &Meter, of_x, of_yz| {
            let d = gradient(of_x, of_yz);
            meter.measure(1, States { task: &task, v: &v, d: &d, defect: &v }).error
        };
        let error = |of_x, of_yz| error_of(&meter, of_x, of_yz);
        // As x begins at rest, it is measured by how fast it has become.
        for (of_x, of_yz, expected) in
            [(0.5, 50.0, 1.0), (1.0, 0.1, 1.0), (0.25, 0.1, 0.25), (0.0, 300.0, 3.0)]
        {
            assert!((error(of_x, of_yz) - expected).abs() < 1e-12, "{of_x}, {of_yz}: {}", error(of_x, of_yz));
        }
        assert!(error(f64::NAN, 1.0).is_nan());
        assert!((error_of(&resting, 5.0, 50.0) - 0.5).abs() < 1e-12, "x has no step");
    }

    #[test]
    fn a_spread_far_below_the_mean_is_seen() {
        let task = Task::<f64>::draw(&Scenario::default());
        let words = task.shape().words();
        let mut v = vec![1e8; 2 * words];
        v[0] += 1e-2;
        let zero = vec![0.0; v.len()];
        let states = States { task: &task, v: &v, d: &zero, defect: &zero[..words] };
        let metrics = Meter::new(&task, 1.0).measure(1, states);
        let expected = 0.5e-2 / (1e8 * (words as f64).sqrt());
        assert!((metrics.consensus_error / expected - 1.0).abs() < 1e-4, "{:e}", metrics.consensus_error);
    }
}
