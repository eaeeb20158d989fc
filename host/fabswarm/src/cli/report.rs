//! `fabswarm report`: a page about a run, or about several side by side.

use super::flags;
use anyhow::Result;
use clap::{ArgMatches, Command};
use fabswarm_view::RunFiles;
use fabswarm_view::report::{self, REPORT_FILE};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) fn command() -> Command {
    let out =
        "File to write [default: report.html in the folder of one run, comparison.html here for several]";
    Command::new("report")
        .about("Write report.html of a run again, or compare several runs on one page")
        .arg(flags::path("runs", "RUN", "Folders of runs, or of sweeps").required(true).num_args(1..))
        .arg(flags::path_option("out", "FILE", out))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in matches.get_many::<PathBuf>("runs").into_iter().flatten() {
        // A sweep keeps its runs in a folder below.
        match fabswarm_view::list(&folder.join("runs")) {
            Ok(runs) if !runs.is_empty() => folders.extend(runs.into_iter().map(|run| run.path)),
            _ => folders.push(folder.clone()),
        }
    }
    let runs: Vec<RunFiles> =
        folders.iter().map(|folder| RunFiles::read(folder)).collect::<Result<_, _>>()?;
    let (page, default) = match &runs[..] {
        [run] => (report::of_run(run), run.path.join(REPORT_FILE)),
        runs => (report::of_comparison(runs), PathBuf::from("comparison.html")),
    };
    let named = matches.get_one::<PathBuf>("out");
    if named.is_none() && runs.len() > 1 && default.exists() {
        anyhow::bail!(
            fault!("{} is there already", default.display(); "remove it, or name another file with --out")
        );
    }
    let path = named.cloned().unwrap_or(default);
    fs::write(&path, page).map_err(|error| {
        fault!("cannot write {}: {error}", path.display(); "name a file that you may write with --out")
    })?;
    outln!("{}", path.display());
    Ok(ExitCode::SUCCESS)
}
