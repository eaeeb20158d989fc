//! Figures and tables of an experiment on small problems.

use std::fmt::Write as _;

use fabswarm_plot::{LinePoint, PlotLine, Scale};

use super::{Axis, MethodOutcome, MethodWorkload, Point, RunOutcome, StepGrid};
use crate::experiment::{Experiment, ExperimentOutcome, SearchTrial};
use crate::method::StepSizes;
use crate::page::{Column, Presentation};
use crate::spread::Spread;

impl Presentation for MethodWorkload {
    const TRIALS_FILE: &'static str = "steps.csv";
    const TRIAL_COLUMNS: &'static str = "step_upper,step_lower,settled_error";
    const CURVE_COLUMNS: &'static str = "iterations,rounds,floats,seconds,error_mean,error_deviation,\
                                         consensus_mean,consensus_deviation,stationarity_mean,seeds";
    const COLUMNS: &'static [Column<Self>] = &[
        ("step on x, on y", |one, grid| steps(grid, one)),
        ("settled error", |one, _| match one.diverged() {
            0 => {
                let Spread { mean, deviation } = one.settled_error();
                format!("{mean:.1e} ± {deviation:.0e}")
            }
            diverged if diverged == one.runs.len() => "diverges".to_owned(),
            diverged => format!("diverges for {diverged} of {}", one.runs.len()),
        }),
        ("rounds to 1 %", |one, _| {
            let text = |rounds: Spread| format!("{:.0} ± {:.0}", rounds.mean, rounds.deviation);
            one.to_one_percent(Axis::Rounds).map_or("–".to_owned(), text)
        }),
        ("floats to 1 %", |one, _| {
            one.to_one_percent(Axis::Floats).map_or("–".to_owned(), |floats| format!("{:.2e}", floats.mean))
        }),
        ("rounds/s", |one, _| {
            let rate = |run: &RunOutcome| f64::from(run.last().rounds) / run.last().seconds.max(1e-9);
            format!("{:.0}", Spread::of(one.runs.iter().map(rate)).mean)
        }),
        ("seeds: below 1 %, diverged, all", |one, _| {
            format!("{}, {}, {}", one.converged(), one.diverged(), one.runs.len())
        }),
        ("paper", |one, _| one.series.work.paper.clone().unwrap_or_default()),
        ("reference", |one, _| {
            one.series.work.reference.map_or(String::new(), |rounds| format!("{rounds:.0}"))
        }),
    ];

    fn notes(experiment: &Experiment<Self>, _: &ExperimentOutcome<Self>) -> Vec<String> {
        if experiment.series.iter().all(|series| series.work.steps.is_some()) {
            return Vec::new();
        }
        let grid = &experiment.search;
        let list = |steps: &[f64]| steps.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        vec![format!(
            "Steps were searched for every method on the same grid and budget, for each panel by itself. On x: {}. On y, z and v: {}. \
             Each try took {} rounds on seeds {}, which do not count below. The lowest geometric mean of the settled error and of the error over the whole run won.",
            list(&grid.upper),
            list(&grid.lower),
            grid.rounds,
            grid.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
        )]
    }

    fn curve(outcome: &MethodOutcome, axis: Axis) -> Vec<LinePoint> {
        let point = |points: Vec<Point>| {
            let error = Spread::of(points.iter().map(|point| point.error));
            // The mean less the deviation can be negative, which has no logarithm: no lower than the best run.
            let least = points.iter().map(|point| point.error).fold(f64::INFINITY, f64::min);
            LinePoint {
                x: Spread::of(points.iter().map(|point| point.on(axis))).mean,
                y: error.mean,
                low: (error.mean - error.deviation).max(least),
                high: error.mean + error.deviation,
            }
        };
        outcome.samples().into_iter().map(point).collect()
    }

    fn scale(axis: Axis, lines: &[PlotLine]) -> (&'static str, Scale) {
        let name = match axis {
            Axis::Iterations => "iterations (outer ones of a double loop)",
            Axis::Rounds => "rounds of communication",
            Axis::Floats => "floats over all links",
            Axis::Seconds => "seconds on one core",
        };
        // A curve beyond 10 has left the picture; showing where to would flatten the others.
        let errors = lines.iter().flat_map(|line| &line.points).map(|point| point.y.min(10.0));
        (name, Scale::decades("relative error", errors))
    }

    fn curve_rows(outcome: &MethodOutcome) -> Vec<String> {
        let row = |points: Vec<Point>| {
            let spread = |value: fn(&Point) -> f64| Spread::of(points.iter().map(value));
            let places = [Axis::Iterations, Axis::Rounds, Axis::Floats, Axis::Seconds]
                .map(|axis| Spread::of(points.iter().map(|point| point.on(axis))).mean.to_string());
            let (error, consensus) = (spread(|point| point.error), spread(|point| point.consensus));
            let stationarity = spread(|point| point.stationarity.unwrap_or(f64::NAN)).mean;
            format!(
                "{},{:e},{:e},{:e},{:e},{},{}",
                places.join(","),
                error.mean,
                error.deviation,
                consensus.mean,
                consensus.deviation,
                if stationarity.is_nan() { String::new() } else { format!("{stationarity:e}") },
                points.len()
            )
        };
        outcome.samples().into_iter().map(row).collect()
    }

    fn trial_row(trial: &SearchTrial<Self>) -> String {
        let StepSizes { upper, lower, .. } = trial.choice;
        format!("{upper},{lower},{:e}", trial.score)
    }
}

fn steps(grid: &StepGrid, outcome: &MethodOutcome) -> String {
    let StepSizes { upper, lower, twin } = outcome.choice;
    let mut text = format!("{upper:.3e}");
    if outcome.series.work.method.is_bilevel() {
        let _ = write!(text, ", {lower}");
        if let Some(twin) = twin.filter(|twin| *twin != lower) {
            let _ = write!(text, " (z: {twin})");
        }
    }
    let is_edge = |steps: &[f64], step: f64| steps.first() == Some(&step) || steps.last() == Some(&step);
    if outcome.series.work.steps.is_none() && (is_edge(&grid.upper, upper) || is_edge(&grid.lower, lower)) {
        text += " (edge of the grid)";
    }
    text
}
