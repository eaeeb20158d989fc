//! Figures and tables of an experiment on small problems.

use std::fmt::Write as _;

use fabswarm_plot::{LinePoint, PlotLine, Scale};

use super::{Axis, MethodOutcome, MethodWorkload, RunOutcome, StepGrid};
use crate::experiment::{Experiment, ExperimentOutcome, SearchTrial};
use crate::method::StepSizes;
use crate::page::Presentation;
use crate::spread::Spread;
use crate::table::Table;

impl Presentation for MethodWorkload {
    const TRIALS_FILE: &'static str = "steps.csv";
    const TRIAL_COLUMNS: &'static str = "step_upper,step_lower,settled_error";
    const CURVE_COLUMNS: &'static str = "iterations,rounds,floats,seconds,error_mean,error_deviation,\
                                         consensus_mean,consensus_deviation,seeds";

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
        // The mean less the deviation can be negative, which has no logarithm: no lower than the best run.
        let point = |point: super::outcome::CurvePoint| LinePoint {
            x: point.on(axis),
            y: point.error.mean,
            low: (point.error.mean - point.error.deviation).max(point.least_error),
            high: point.error.mean + point.error.deviation,
        };
        outcome.curve().into_iter().map(point).collect()
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

    fn results(experiment: &Experiment<Self>, outcomes: &[MethodOutcome]) -> Table {
        results(&experiment.search, outcomes)
    }

    fn curve_rows(outcome: &MethodOutcome) -> Vec<String> {
        let row = |point: super::outcome::CurvePoint| {
            let [iterations, rounds, floats, seconds] = point.places;
            let (error, consensus) = (point.error, point.consensus);
            format!(
                "{iterations},{rounds},{floats},{seconds:.6},{:e},{:e},{:e},{:e},{}",
                error.mean,
                error.deviation,
                consensus.mean,
                consensus.deviation,
                outcome.runs.len()
            )
        };
        outcome.curve().into_iter().map(row).collect()
    }

    fn trial_row(trial: &SearchTrial<Self>) -> String {
        let StepSizes { upper, lower, .. } = trial.choice;
        format!("{upper},{lower},{:e}", trial.score)
    }
}

fn results(grid: &StepGrid, outcomes: &[MethodOutcome]) -> Table {
    let mut table = Table::new(&[
        "panel",
        "method",
        "step on x, on y",
        "settled error",
        "rounds to 1 %",
        "floats to 1 %",
        "rounds/s",
        "seeds: below 1 %, diverged, all",
    ]);
    let has_paper = outcomes.iter().any(|outcome| outcome.series.work.paper.is_some());
    if has_paper {
        table.head.extend(["paper".to_owned(), "reference".to_owned()]);
    }
    for outcome in outcomes {
        let rate = |run: &RunOutcome| f64::from(run.last().rounds) / run.last().seconds.max(1e-9);
        let mut row = vec![
            outcome.series.panel.clone(),
            outcome.series.label.clone(),
            steps(grid, outcome),
            match outcome.diverged() {
                0 => plus_minus(outcome.settled_error()),
                diverged if diverged == outcome.runs.len() => "diverges".to_owned(),
                diverged => format!("diverges for {diverged} of {}", outcome.runs.len()),
            },
            rounded(outcome.to_one_percent(Axis::Rounds)),
            outcome
                .to_one_percent(Axis::Floats)
                .map_or("–".to_owned(), |floats| format!("{:.2e}", floats.mean)),
            format!("{:.0}", Spread::of(outcome.runs.iter().map(rate)).mean),
            format!("{}, {}, {}", outcome.converged(), outcome.diverged(), outcome.runs.len()),
        ];
        if has_paper {
            row.push(outcome.series.work.paper.clone().unwrap_or_default());
            row.push(outcome.series.work.reference.map_or(String::new(), |rounds| format!("{rounds:.0}")));
        }
        table.rows.push(row);
    }
    table
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

/// `mean ± deviation` with two digits.
fn plus_minus(spread: Spread) -> String {
    format!("{:.1e} ± {:.0e}", spread.mean, spread.deviation)
}

fn rounded(spread: Option<Spread>) -> String {
    spread.map_or("–".to_owned(), |spread| format!("{:.0} ± {:.0}", spread.mean, spread.deviation))
}
