//! `fabswarm verify`: execute a run again, or replay a flight on shadows, and compare bit for bit.

use super::flags;
use anyhow::Result;
use clap::{ArgMatches, Command};
use fabswarm_plot::escaped;
use fabswarm_sim::record::counted;
use fabswarm_sim::scenario::{self, PaceKind};
use fabswarm_view::RunVerdict;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// The exit code of a run that differs from its log, or a flight from its shadows.
const DIFFERS: u8 = 4;

pub(super) fn command() -> Command {
    Command::new("verify")
        .about("Execute a run again in this process, or replay the run of boards that kept their own time (swarm.pace = \"slots\") on shadows, and compare every digest")
        .arg(flags::run_folder())
        .arg(flags::path_option("junit", "FILE", "Also write the verdict as a JUnit report, for a CI server"))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let folder: &PathBuf = matches.get_one("run").expect("clap asks for it");
    if folder.join("model.safetensors").exists() || folder.join("checkpoint.safetensors").exists() {
        anyhow::bail!(fault!(
            "{} is a training run, which has no digests", folder.display();
            "run its scenario.toml again with `fabswarm train`, and compare metrics.csv: on the same kind of processor all bytes are equal"
        ));
    }
    let file = folder.join("scenario.toml");
    if !file.exists() {
        anyhow::bail!(no_run(folder));
    }
    let resolved = scenario::resolve(Some(&file), &[])?;
    let begun = Instant::now();
    let difference = match resolved.scenario.swarm.pace {
        PaceKind::Slots => flight(folder)?,
        _ => {
            let RunVerdict { rounds, checks, frames, rows, files, difference } =
                fabswarm_view::verify(folder)?;
            let [rounds, checks, frames, rows] =
                [(rounds, "round"), (checks, "digest"), (frames, "frame"), (rows, "row")]
                    .map(|(count, of)| counted(count as usize, of));
            let files: String = files.iter().map(|file| format!(", {file} too")).collect();
            outln!("{rounds} executed again, {checks} and {frames} equal");
            outln!("{rows} of metrics.csv equal{files}");
            difference
        }
    };
    if let Some(file) = matches.get_one::<PathBuf>("junit") {
        let report = junit(folder, begun.elapsed().as_secs_f64(), difference.as_deref());
        fs::write(file, report).map_err(
            |error| fault!("cannot write {}: {error}", file.display(); "check that its folder is there"),
        )?;
    }
    Ok(match difference {
        None => ExitCode::SUCCESS,
        Some(difference) => {
            eprintln!("error: {difference}");
            ExitCode::from(DIFFERS)
        }
    })
}

/// The error for a folder without a scenario.
fn no_run(folder: &Path) -> anyhow::Error {
    let shown = folder.display();
    if folder.join("scenarios").is_dir() {
        fault!("{shown} is the folder of a sweep"; "name one of its runs, which are the folders in {shown}/runs")
    } else if folder.exists() {
        fault!("{shown} is no run folder: it has no scenario.toml"; "`fabswarm runs` lists run folders")
    } else {
        fault!("there is no run {shown}"; "`fabswarm runs` lists run folders")
    }
}

/// The verdict on a run as a JUnit report with one test case.
fn junit(folder: &Path, seconds: f64, difference: Option<&str>) -> String {
    let name = escaped(&folder.display().to_string());
    let failure = difference.map(|difference| format!("<failure message=\"{}\"/>", escaped(difference)));
    let (failures, failure) = (usize::from(failure.is_some()), failure.unwrap_or_default());
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuite name=\"fabswarm verify\" tests=\"1\" failures=\"{failures}\" time=\"{seconds:.3}\">\n\
         <testcase classname=\"fabswarm.verify\" name=\"{name}\" time=\"{seconds:.3}\">{failure}</testcase>\n\
         </testsuite>\n"
    )
}

/// Replays a flight and returns the first difference.
#[cfg(feature = "boards")]
fn flight(folder: &Path) -> Result<Option<String>> {
    let fabswarm_attach::FlightVerdict { rounds, checks, uncompared, gaps, fault } =
        fabswarm_attach::verify(folder)?;
    let [rounds, checks] =
        [(rounds as usize, "round"), (checks as usize, "digest")].map(|(n, of)| counted(n, of));
    outln!("{rounds}, {checks} equal, {uncompared} not compared");
    if !gaps.is_empty() {
        outln!(
            "not all rounds were reported: {}; neither can what these boards, and those that heard them, came to since be compared",
            gaps.join(", ")
        );
    }
    Ok(fault.map(|fault| fault.to_string()))
}

#[cfg(not(feature = "boards"))]
fn flight(folder: &Path) -> Result<Option<String>> {
    anyhow::bail!(fault!(
        "the boards of {} kept their own time", folder.display();
        "replay their run with a build that has the feature `boards`"
    ))
}
