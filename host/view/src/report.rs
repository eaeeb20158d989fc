//! `report.html`: a run on one page, or several side by side. The page needs nothing but itself.

mod matrix;

use crate::run_files::RunFiles;
use fabswarm_plot::{Figure, HtmlPage, LinePoint, Panel, PlotLine, Scale};
use serde_json::Value;
use std::collections::BTreeSet;

/// The name of the report in a run folder.
pub const REPORT_FILE: &str = "report.html";

/// Keys of `summary.json` that a report shows, with their labels.
const OUTCOME: [(&str, &str); 19] = [
    ("stopped_because", "ended"),
    ("rounds", "rounds"),
    ("rounds_to_one_percent_distance", "rounds to 1 % distance to solution"),
    ("rounds_to_one_percent_gradient", "rounds to 1 % of the first gradient norm"),
    ("distance_to_solution", "distance to solution"),
    ("gradient_norm", "gradient norm"),
    ("test_accuracy", "test accuracy"),
    ("test_loss", "test loss"),
    ("cleaning_auc", "cleaning AUC"),
    ("consensus_error", "consensus error"),
    ("tracking_defect", "tracking defect"),
    ("mass_waiting", "mass waiting"),
    ("seconds", "seconds"),
    ("rounds_per_second", "rounds per second"),
    ("frames_sent", "frames sent"),
    ("copies_lost", "copies lost"),
    ("copies_refused", "copies refused"),
    ("digest_checks", "digests compared with shadows"),
    ("digest_mismatches", "digests that differed"),
];

/// The curves of a run, and whether they fall by powers of ten.
const CURVES: [(&str, &str, bool); 8] = [
    ("distance_to_solution", "distance to solution", true),
    ("gradient_norm", "gradient norm", true),
    ("consensus_error", "consensus error", true),
    ("tracking_defect", "tracking defect", true),
    ("upper_value", "upper value f", false),
    ("lower_value", "lower value g", false),
    ("test_accuracy", "test accuracy", false),
    ("test_loss", "test loss", false),
];

/// The report on one run.
pub fn of_run(run: &RunFiles) -> String {
    let about = run.about().unwrap_or(Value::Null);
    let mut page = HtmlPage::new(&format!("Run {}", run.name));
    if let Some(description) = about["description"].as_str() {
        page.paragraph(description);
    }
    match &run.summary {
        Some(summary) => {
            // Without boards there was nothing to compare.
            let has_boards = summary["digest_checks"].as_u64() > Some(0);
            let outcome = OUTCOME.iter().filter(|(key, _)| has_boards || !key.starts_with("digest"));
            let rows = outcome.filter_map(|(key, words)| {
                let value = summary.get(key).filter(|value| !value.is_null())?;
                Some(vec![(*words).to_owned(), number(value)])
            });
            let task = summary["task"].as_object().into_iter().flatten();
            let scores = task.map(|(name, value)| vec![name.replace('_', " "), number(value)]);
            page.table("Outcome", [], rows.chain(scores));
        }
        None => page.paragraph("This run has not ended, or was killed: what follows is as far as it got."),
    }
    convergence(&mut page, &[run]);
    air(&mut page, run);
    let view = run.last_view();
    if let Some(view) = &view {
        page.section("Links", &matrix::of_view(view));
        agents(&mut page, view);
    }
    faults(&mut page, run);
    let environment = [("version", "fabswarm"), ("build", "build"), ("system", "system"), ("cores", "cores")];
    let rows = environment.iter().filter_map(|(key, words)| {
        let value = about.get(key).filter(|value| !value.is_null())?;
        Some(vec![(*words).to_owned(), number(value)])
    });
    page.table("Environment", [], rows);
    page.details("Scenario", &run.scenario);
    page.finish()
}

/// Several runs side by side.
pub fn of_comparison(runs: &[RunFiles]) -> String {
    let mut page = HtmlPage::new(&format!("{} runs side by side", runs.len()));
    let names: Vec<String> = runs.iter().map(|run| run.path.display().to_string()).collect();
    let header = || std::iter::once("").chain(names.iter().map(String::as_str));
    let outcome = OUTCOME.iter().filter_map(|(key, words)| {
        let values = runs.iter().map(|run| {
            let value = run.summary.as_ref().and_then(|summary| summary.get(key));
            value.filter(|value| !value.is_null()).map_or_else(|| "–".to_owned(), number)
        });
        let values: Vec<String> = values.collect();
        let is_known = values.iter().any(|value| value != "–");
        is_known.then(|| std::iter::once((*words).to_owned()).chain(values).collect())
    });
    page.table("Outcome", header(), outcome.collect::<Vec<_>>());
    let all: Vec<&RunFiles> = runs.iter().collect();
    convergence(&mut page, &all);
    let scenarios: Vec<_> = runs.iter().map(RunFiles::scenario_values).collect();
    let keys: BTreeSet<&String> = scenarios.iter().flat_map(|scenario| scenario.keys()).collect();
    let differences: Vec<Vec<String>> = keys
        .into_iter()
        .filter(|key| *key != "output.out")
        .map(|key| {
            let values =
                scenarios.iter().map(|scenario| scenario.get(key).cloned().unwrap_or_else(|| "–".to_owned()));
            std::iter::once(key.clone()).chain(values).collect::<Vec<_>>()
        })
        .filter(|row| row[1..].windows(2).any(|pair| pair[0] != pair[1]))
        .collect();
    if differences.is_empty() {
        page.paragraph("All keys of the scenarios are the same.");
    } else {
        page.table("Differences in the scenarios", header(), differences);
    }
    page.finish()
}

/// A figure per kind of curve, with a line per run.
fn convergence(page: &mut HtmlPage, runs: &[&RunFiles]) {
    for (column, words, is_logarithmic) in CURVES {
        let mut lines: Vec<PlotLine> = Vec::new();
        for run in runs {
            let (Some(rounds), Some(values)) = (run.metrics.get("round"), run.metrics.get(column)) else {
                continue;
            };
            let points = rounds.iter().zip(values).filter(|(_, value)| value.is_finite());
            let points = points.filter(|(_, value)| !is_logarithmic || **value > 0.0);
            let points: Vec<_> = points.map(|(round, value)| LinePoint::new(*round, *value)).collect();
            if points.len() > 1 {
                lines.push(PlotLine { name: run.path.display().to_string(), colour: lines.len(), points });
            }
        }
        if !lines.is_empty() {
            let values: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|point| point.y).collect();
            let scale = if is_logarithmic { Scale::decades } else { Scale::around };
            let panel = Panel::new("", "round", scale("", values.into_iter()), lines);
            let label = if runs.len() > 1 { words.to_owned() } else { format!("{words} over rounds") };
            page.section(&label, &Figure::new("", "", vec![panel]).to_svg());
        }
    }
}

/// Counts of frames and copies by outcome.
fn air(page: &mut HtmlPage, run: &RunFiles) {
    let Some(air) = run.summary.as_ref().and_then(|summary| summary["air"].as_object()) else { return };
    let mut rows = Vec::new();
    for (name, value) in air {
        match value {
            Value::Number(count) if count.as_u64() != Some(0) => {
                rows.push(vec![name.replace('_', " "), number(value)]);
            }
            Value::Object(causes) => {
                for (cause, count) in causes.iter().filter(|(_, count)| count.as_u64() != Some(0)) {
                    rows.push(vec![format!("{}: {cause}", name.replace('_', " ")), number(count)]);
                }
            }
            _ => {}
        }
    }
    page.table("Frames and copies", [], rows);
    let worst = air.get("worst_links").and_then(Value::as_array).into_iter().flatten();
    let worst: Vec<Vec<String>> = worst
        .map(|link| {
            let link_of = format!("{} → {}", link["sender"], link["receiver"]);
            vec![link_of, number(&link["copies"]), number(&link["lost"])]
        })
        .collect();
    if !worst.is_empty() {
        page.table("Worst links", ["link", "copies", "lost"], worst);
    }
}

/// A row per agent, as the last view has them.
fn agents(page: &mut HtmlPage, view: &Value) {
    const MOST: usize = 200;
    let agents = &view["agents"];
    let conditions = agents["condition"].as_str().unwrap_or_default();
    let rows = conditions.chars().take(MOST).enumerate().map(|(agent, condition)| {
        let condition = match condition {
            'r' => "running",
            's' => "silent",
            'f' => "frozen",
            _ => "down",
        };
        let digest = agents["digest"][agent].as_u64();
        let mut row = vec![agent.to_string(), condition.to_owned()];
        row.extend(["round", "epoch", "boot", "deviation"].map(|column| number(&agents[column][agent])));
        row.push(digest.map_or_else(|| "–".to_owned(), |digest| format!("{digest:08x}")));
        row
    });
    let header = ["agent", "state", "round", "epoch", "boots", "distance from the mean", "digest"];
    page.table(&format!("Agents after round {}", view["round"]), header, rows.collect::<Vec<_>>());
    if conditions.len() > MOST {
        page.paragraph(&format!("{} more agents are in the log.", conditions.len() - MOST));
    }
}

/// The faults that the scenario injects.
fn faults(page: &mut HtmlPage, run: &RunFiles) {
    let nothing = ["0", "0.0", "\"\"", "false"];
    let values = run.scenario_values();
    let rows = values.into_iter().filter(|(key, value)| {
        let is_fault = key.starts_with("faults.") || key.starts_with("intruder.");
        let is_size = ["faults.burst_rounds", "intruder.frames_per_round", "intruder.memory_frames"];
        is_fault && !nothing.contains(&value.as_str()) && !is_size.contains(&key.as_str())
    });
    let rows: Vec<_> = rows.map(|(key, value)| vec![key, value]).collect();
    if rows.is_empty() {
        page.section("Faults", "<p>The scenario has none.</p>");
    } else {
        page.table("Faults", [], rows);
    }
}

/// Formats a value with few digits and groups of three.
fn number(value: &Value) -> String {
    if let Some(whole) = value.as_u64() {
        let digits = whole.to_string();
        let groups: Vec<&str> =
            digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
        return groups.join(" ");
    }
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(value) => {
            let value = value.as_f64().unwrap_or(f64::NAN);
            match value.abs() {
                0.0 => "0".to_owned(),
                // Four digits that mean something.
                size @ 1e-3..1e5 => {
                    let digits = (3 - size.log10().floor() as i32).max(0);
                    format!("{value:.*}", digits as usize)
                }
                _ => format!("{value:.3e}"),
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
