//! Results of runs: one [`RunOutcome`] per seed, together a [`MethodOutcome`].

use serde::{Deserialize, Serialize};

use super::{Axis, MethodWorkload};
use crate::spread::Spread;
use crate::workload::SeriesOutcome;

/// The error below which a run has converged.
pub(super) const ONE_PERCENT: f64 = 0.01;

/// Where a run stood.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) iterations: u32,
    pub(crate) rounds: u32,
    /// Floats that arrived so far.
    pub(crate) floats: u64,
    pub(crate) seconds: f64,
    /// Distance from the solution; 1 where it is not known.
    pub(crate) error: f64,
    pub(crate) consensus: f64,
    /// The squared gradient of what the method minimises, where no solution is known.
    pub(crate) stationarity: Option<f64>,
}

impl Point {
    pub(crate) fn on(&self, axis: Axis) -> f64 {
        match axis {
            Axis::Iterations => self.iterations.into(),
            Axis::Rounds => self.rounds.into(),
            Axis::Floats => self.floats as f64,
            Axis::Seconds => self.seconds,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunOutcome {
    /// Samples at equal distances in rounds, the start and the end among them.
    pub(crate) points: Vec<Point>,
    /// The first point with an error below one per cent.
    pub(crate) one_percent: Option<Point>,
    /// Numbers that an agent keeps from one iteration to the next.
    pub(crate) memory: usize,
    /// Whether the error went beyond all bounds.
    pub(crate) has_diverged: bool,
}

impl RunOutcome {
    pub(crate) fn last(&self) -> &Point {
        &self.points[self.points.len() - 1]
    }

    /// The error at `amount` on an axis, between two samples as if it fell by the same factor with every step: methods keep samples at
    /// different iterations, and can be compared only at one.
    pub(super) fn error_at(&self, axis: Axis, amount: f64) -> f64 {
        let next = self.points.partition_point(|point| point.on(axis) <= amount);
        let Some(before) = next.checked_sub(1).map(|at| self.points[at]) else { return 1.0 };
        let Some(after) = self.points.get(next) else { return before.error };
        let share = (amount - before.on(axis)) / (after.on(axis) - before.on(axis));
        before.error * (after.error.max(1e-300) / before.error.max(1e-300)).powf(share)
    }

    /// The least of something over the samples of the first `rounds`. The start does not count: all agents start at one point, so its
    /// consensus error is 0.
    pub(super) fn least(&self, rounds: f64, value: impl Fn(&Point) -> f64) -> f64 {
        let first = self.points.iter().skip(1).take_while(|point| point.on(Axis::Rounds) <= rounds);
        first.map(value).fold(f64::INFINITY, f64::min)
    }

    /// The geometric mean of the error over the last tenth of its samples: of a noisy run, where it settled.
    pub(crate) fn settled_error(&self) -> f64 {
        if self.has_diverged {
            return f64::INFINITY;
        }
        mean_log(&self.points[self.points.len() - self.points.len().div_ceil(10)..]).exp()
    }

    /// The mean of the logarithm of the error over all samples: the lower, the faster it fell.
    pub(super) fn mean_log_error(&self) -> f64 {
        mean_log(&self.points)
    }
}

fn mean_log(points: &[Point]) -> f64 {
    points.iter().map(|point| point.error.max(1e-300).ln()).sum::<f64>() / points.len() as f64
}

pub(crate) type MethodOutcome = SeriesOutcome<MethodWorkload>;

impl MethodOutcome {
    pub(crate) fn settled_error(&self) -> Spread {
        Spread::of(self.runs.iter().map(RunOutcome::settled_error))
    }

    pub(crate) fn diverged(&self) -> usize {
        self.runs.iter().filter(|run| run.has_diverged).count()
    }

    /// Runs that came below one per cent.
    pub(crate) fn converged(&self) -> usize {
        self.runs.iter().filter(|run| run.one_percent.is_some()).count()
    }

    /// The cost of coming below one per cent, over the runs that did; `None` where none did.
    pub(crate) fn to_one_percent(&self, axis: Axis) -> Option<Spread> {
        let places = self.runs.iter().filter_map(|run| run.one_percent).map(|point| point.on(axis));
        (self.converged() > 0).then(|| Spread::of(places))
    }

    /// Rounds to one per cent in words: a mean, how many seeds got there, or what happened instead.
    pub(super) fn rounds_or_why(&self) -> String {
        let (converged, all) = (self.converged(), self.runs.len());
        match self.to_one_percent(Axis::Rounds) {
            Some(rounds) if converged == all => format!("{:.0}", rounds.mean),
            Some(rounds) => format!("{:.0} ({converged} of {all} seeds)", rounds.mean),
            None if self.most_went_away() => "diverges".to_owned(),
            None => format!("never (error {:.1e})", self.settled_error().mean),
        }
    }

    /// Whether most seeds ended farther away than they started.
    pub(super) fn most_went_away(&self) -> bool {
        let away = self.runs.iter().filter(|run| run.has_diverged || run.last().error > 2.0).count();
        2 * away > self.runs.len()
    }
}
