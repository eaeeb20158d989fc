//! Tables: what was measured, as Markdown for people and as CSV for programs.

use std::fmt::Write as _;

use crate::campaign::ExperimentOutcome;
use crate::experiment::Axis;
use crate::method::StepSizes;
use crate::outcome::{SeriesOutcome, Spread};
use crate::verdict::Verdict;

/// A table with a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub head: Vec<String>,
    /// The rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no rows yet.
    #[must_use]
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// The table in Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
        text += &line(&self.head);
        text += &line(&vec!["---".to_owned(); self.head.len()]);
        self.rows.iter().for_each(|row| text += &line(row));
        text
    }
}

/// How each series did.
#[must_use]
pub fn results(outcomes: &[SeriesOutcome]) -> Table {
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
    let has_paper = outcomes.iter().any(|outcome| outcome.series.paper.is_some());
    if has_paper {
        table.head.extend(["paper".to_owned(), "reference".to_owned()]);
    }
    for outcome in outcomes {
        let rate =
            |run: &crate::outcome::RunOutcome| f64::from(run.last().rounds) / run.last().seconds.max(1e-9);
        let mut row = vec![
            outcome.series.panel.clone(),
            outcome.series.label.clone(),
            steps(outcome),
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
            row.push(outcome.series.paper.clone().unwrap_or_default());
            row.push(outcome.series.reference.map_or(String::new(), |rounds| format!("{rounds:.0}")));
        }
        table.rows.push(row);
    }
    table
}

fn steps(outcome: &SeriesOutcome) -> String {
    let StepSizes { upper, lower, twin } = outcome.steps;
    let mut text = format!("{upper:.3e}");
    if outcome.series.method.is_bilevel() {
        let _ = write!(text, ", {lower}");
        if let Some(twin) = twin.filter(|twin| *twin != lower) {
            let _ = write!(text, " (z: {twin})");
        }
    }
    if !outcome.is_inside_grid {
        text += " (edge of the grid)";
    }
    text
}

/// `mean ± deviation` with two digits.
#[must_use]
pub fn plus_minus(spread: Spread) -> String {
    format!("{:.1e} ± {:.0e}", spread.mean, spread.deviation)
}

fn rounded(spread: Option<Spread>) -> String {
    spread.map_or("–".to_owned(), |spread| format!("{:.0} ± {:.0}", spread.mean, spread.deviation))
}

/// The verdicts as a table.
#[must_use]
pub fn verdicts(verdicts: &[Verdict], seeds: u64) -> Table {
    let mut table = Table::new(&["claim of the paper", "what we measured", "seen?", "seeds"]);
    for verdict in verdicts {
        let row =
            [verdict.claim.clone(), verdict.measured.clone(), verdict.finding.to_string(), seeds.to_string()];
        table.rows.push(row.to_vec());
    }
    table
}

/// All curves as CSV.
#[must_use]
pub fn curves_csv(outcomes: &[SeriesOutcome]) -> String {
    let mut text = "panel,method,iterations,rounds,floats,seconds,error_mean,error_deviation,\
                    consensus_mean,consensus_deviation,seeds\n"
        .to_owned();
    for outcome in outcomes {
        for point in outcome.curve() {
            let [iterations, rounds, floats, seconds] = point.places;
            let _ = writeln!(
                text,
                "\"{}\",\"{}\",{iterations},{rounds},{floats},{seconds:.6},{:e},{:e},{:e},{:e},{}",
                outcome.series.panel,
                outcome.series.label,
                point.error.mean,
                point.error.deviation,
                point.consensus.mean,
                point.consensus.deviation,
                outcome.runs.len()
            );
        }
    }
    text
}

/// All tries of the grid as CSV.
#[must_use]
pub fn trials_csv(outcome: &ExperimentOutcome) -> String {
    let mut text = "panel,method,step_upper,step_lower,settled_error\n".to_owned();
    for trial in &outcome.trials {
        let StepSizes { upper, lower, .. } = trial.steps;
        let _ = writeln!(text, "\"{}\",\"{}\",{upper},{lower},{:e}", trial.panel, trial.label, trial.error);
    }
    text
}
