//! `fabswarm run --recorded`: replay an explicit problem and graph sequence.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::ArgMatches;

use fabswarm_sim::record::counted;
use fabswarm_sim::recorded::{Error, RecordedProblem, largest_difference, replay};
use fabswarm_sim::scenario::{Flag, PrecisionKind};

/// The only key of a scenario that a recorded problem leaves open.
const PRECISION: &str = "swarm.precision";

pub(super) fn run(file: &Path, out: &Path, flags: &[Flag], matches: &ArgMatches) -> Result<ExitCode> {
    if let Some(flag) = flags.iter().find(|flag| flag.key.path != PRECISION) {
        bail!(fault!(
            "--{} does not go with --recorded", flag.key.flag;
            "the recorded file sets everything except --precision"
        ));
    }
    // A recording is a reference: it is replayed in double precision unless asked otherwise.
    let precision = match matches.get_one::<String>("precision").map(String::as_str) {
        Some("f32") => PrecisionKind::F32,
        _ => PrecisionKind::F64,
    };
    let recorded = RecordedProblem::read(file)?;
    recorded.check_is_other(out)?;
    let snapshots = match replay(&recorded, precision) {
        Err(Error::Swarm(error)) => {
            eprintln!("error: {error}");
            return Ok(ExitCode::from(3));
        }
        outcome => outcome?,
    };
    recorded.write(out, &snapshots)?;
    let agents = counted(recorded.agents(), "agent");
    let last = recorded.rounds().last().copied().unwrap_or(0);
    outln!("{agents}, {last} rounds in {precision}, {} snapshots in {}", snapshots.len(), out.display());
    match largest_difference(&snapshots, recorded.snapshots()) {
        Some(difference) => {
            outln!("largest difference from the recorded states: {difference:.1e} (relative)")
        }
        None => outln!("not compared: the recorded file names rounds without all of their states"),
    }
    Ok(ExitCode::SUCCESS)
}
