//! `fabswarm runs`: the run folders there are, and which of them can go.

use super::{flags, output};
use anyhow::{Result, bail};
use clap::{ArgMatches, Command, builder::PossibleValuesParser, value_parser};
use fabswarm_sim::record;
use fabswarm_view::{ListedRun, RunState};
use serde_json::Value;
use std::cmp::Ordering;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) fn command() -> Command {
    let folder = || flags::path("folder", "FOLDER", "Folder that holds the runs").default_value("runs");
    let only = "Only runs with this text in their name, problem, data, model, method, algorithm or end";
    let only = || flags::option("only", "TEXT", only);
    let keep = flags::option("keep", "N", "Keep the N newest that ended, too");
    let unfinished = "Only runs that have no summary: killed, or not written to their end";
    let columns = PossibleValuesParser::new(["name", "age", "rounds", "error", "size"]);
    let sort = flags::option("sort", "COLUMN", "Column to sort by").default_value("name");
    let clean = Command::new("clean")
        .about("Name the runs that can go, and remove them with --yes; runs that go on are never removed")
        .arg(folder())
        .arg(only())
        .arg(keep.value_parser(value_parser!(usize)))
        .arg(flags::switch("unfinished", unfinished))
        .arg(flags::switch("yes", "Remove them"));
    Command::new("runs")
        .about("List run folders, and clean them up")
        .args_conflicts_with_subcommands(true)
        .arg(folder())
        .arg(only())
        .arg(sort.value_parser(columns))
        .subcommand(clean)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    match matches.subcommand() {
        Some(("clean", matches)) => clean(matches),
        _ => list(matches),
    }
}

/// The runs that the command line asks for.
fn chosen(matches: &ArgMatches) -> Result<Vec<ListedRun>> {
    let Some(folder) = matches.get_one::<PathBuf>("folder") else { bail!("FOLDER is missing") };
    let mut runs = fabswarm_view::list(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            fault!("there is no folder {}: no run was kept there yet", folder.display(); "`fabswarm run` keeps runs in the folder runs of where it is started; name another, such as `fabswarm runs FOLDER`")
        }
        _ => fault!("cannot list the runs in {}: {error}", folder.display(); "name a folder that holds run folders")
    })?;
    if let Some(only) = matches.get_one::<String>("only") {
        let has = |text: &str| text.to_lowercase().contains(&only.to_lowercase());
        runs.retain(|run| {
            let fields = ["problem", "data", "model", "method", "algorithm", "topology", "stopped_because"];
            has(&run.path.to_string_lossy())
                || fields.iter().any(|field| run.summary[field].as_str().is_some_and(has))
                || has(state(run.state))
        });
    }
    Ok(runs)
}

fn list(matches: &ArgMatches) -> Result<ExitCode> {
    let mut runs = chosen(matches)?;
    match matches.get_one::<String>("sort").map(String::as_str) {
        Some("age") => runs.sort_by_key(|run| std::cmp::Reverse(run.changed)),
        Some("rounds") => runs.sort_by_key(|run| run.summary["rounds"].as_u64()),
        Some("error") => runs.sort_by(by_error),
        Some("size") => runs.sort_by_key(|run| std::cmp::Reverse(run.bytes)),
        _ => {}
    }
    if runs.is_empty() {
        outln!("no runs");
        return Ok(ExitCode::SUCCESS);
    }
    let header = ["run", "problem", "agents", "ended", "rounds", "error", "size"].map(str::to_owned);
    let lines: Vec<Vec<String>> =
        std::iter::once(header).chain(runs.iter().map(row)).map(Vec::from).collect();
    for line in output::aligned(&lines, &[2, 4, 5, 6]) {
        outln!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

fn by_error(a: &ListedRun, b: &ListedRun) -> Ordering {
    // Distances and gradients have no order among each other.
    match (error(a), error(b)) {
        (Some((kind, a)), Some((other, b))) => kind.cmp(other).then(a.total_cmp(&b)),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

/// The name of a run's error, and its last value; of training, the share of test samples that it got wrong.
fn error(run: &ListedRun) -> Option<(&str, f64)> {
    if let Some(accuracy) = run.summary["test_accuracy"].as_f64() {
        return Some(("test_error", 1.0 - accuracy));
    }
    let kind = run.summary["error_kind"].as_str()?;
    Some((kind, run.summary[kind].as_f64()?))
}

const fn state(state: RunState) -> &'static str {
    match state {
        RunState::Running => "still running",
        RunState::Unfinished => "unfinished",
        RunState::Ended => "ended",
    }
}

fn row(run: &ListedRun) -> [String; 7] {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "–".to_owned(),
        other => other.to_string(),
    };
    let summary = &run.summary;
    let problem = match summary["method"].as_str() {
        Some(method) => format!("{method} of {} by {}", text(&summary["data"]), text(&summary["model"])),
        None => text(&summary["problem"]),
    };
    let ended = match run.state {
        RunState::Ended => text(&summary["stopped_because"]),
        other => state(other).to_owned(),
    };
    [
        run.path.display().to_string(),
        problem,
        text(&summary["agents"]),
        ended,
        text(&summary["rounds"]),
        error(run).map_or_else(
            || "–".to_owned(),
            |(kind, error)| format!("{} {error:.2e}", kind.replace('_', " ")),
        ),
        record::bytes(run.bytes),
    ]
}

fn clean(matches: &ArgMatches) -> Result<ExitCode> {
    let mut runs = chosen(matches)?;
    runs.retain(|run| run.state != RunState::Running);
    if matches.get_flag("unfinished") {
        runs.retain(|run| run.state == RunState::Unfinished);
    }
    // The newest that ended come last and are kept.
    runs.sort_by_key(|run| (run.state, run.changed));
    let kept = matches.get_one::<usize>("keep").copied().unwrap_or(0);
    let ended = runs.iter().filter(|run| run.state == RunState::Ended).count();
    runs.truncate(runs.len() - kept.min(ended));
    let bytes: u64 = runs.iter().map(|run| run.bytes).sum();
    let is_sure = matches.get_flag("yes");
    for run in &runs {
        if is_sure {
            fs::remove_dir_all(&run.path).map_err(|error| {
                fault!("cannot remove {}: {error}", run.path.display(); "see that the folder is yours")
            })?;
        }
        outln!("{}", run.path.display());
    }
    let what = if is_sure { "removed" } else { "would be removed; add --yes to do so" };
    outln!("{}, {}: {what}", record::counted(runs.len(), "run"), record::bytes(bytes));
    Ok(ExitCode::SUCCESS)
}
