//! `fabswarm report`: a page about a run, or about several side by side.

use anyhow::{Result, anyhow};
use clap::{Arg, ArgMatches, Command, value_parser};
use fabswarm_view::RunFiles;
use fabswarm_view::report::{self, REPORT_FILE};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) fn command() -> Command {
    Command::new("report")
        .about("Write report.html of a run again, or compare several runs on one page")
        .arg(
            Arg::new("runs")
                .value_name("RUN")
                .required(true)
                .num_args(1..)
                .help("Folders of runs")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("out")
                .long("out")
                .value_name("FILE")
                .help("File to write [default: report.html in the folder of one run, comparison.html here for several]")
                .value_parser(value_parser!(PathBuf)),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let folders = matches.get_many::<PathBuf>("runs").into_iter().flatten();
    let runs: Vec<RunFiles> = folders.map(|folder| RunFiles::read(folder)).collect::<Result<_, _>>()?;
    let (page, default) = match &runs[..] {
        [run] => (report::of_run(run), run.path.join(REPORT_FILE)),
        runs => (report::of_comparison(runs), PathBuf::from("comparison.html")),
    };
    let path = matches.get_one::<PathBuf>("out").cloned().unwrap_or(default);
    fs::write(&path, page).map_err(|error| {
        anyhow!("cannot write {}: {error}\nhelp: name a file that you may write with --out", path.display())
    })?;
    println!("{}", path.display());
    Ok(ExitCode::SUCCESS)
}
