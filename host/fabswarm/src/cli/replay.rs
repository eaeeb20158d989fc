//! `fabswarm replay`: play a run back, or execute it again and compare.

use super::live;
use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use fabswarm_sim::scenario::{self, PaceKind};
use fabswarm_view::RunVerdict;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The exit code of a run that differs from its log.
const DIFFERS: u8 = 4;

pub(super) fn command() -> Command {
    Command::new("replay")
        .about("Play a run back in the browser, or execute it again and compare every digest")
        .arg(live::folder())
        .arg(
            Arg::new("verify")
                .long("verify")
                .action(ArgAction::SetTrue)
                .help("Execute the run again in this process, compare the digest of every agent in every logged round and all logged frames, and exit"),
        )
        .arg(live::address())
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let Some(folder) = matches.get_one::<PathBuf>("run") else { bail!("RUN is missing") };
    if matches.get_flag("verify") {
        return verify(folder);
    }
    #[cfg(feature = "live")]
    {
        live::replay(folder, matches)?;
        Ok(ExitCode::SUCCESS)
    }
    #[cfg(not(feature = "live"))]
    bail!(
        "this build of fabswarm has no page to replay a run in\nhelp: build it with `cargo build --release --features live`, \
         or add --verify to compare digests"
    )
}

fn verify(folder: &Path) -> Result<ExitCode> {
    let resolved = scenario::resolve(Some(&folder.join("scenario.toml")), &[])?;
    if resolved.scenario.swarm.pace == PaceKind::Slots {
        bail!(
            "the boards of {} kept their own time\nhelp: `fabswarm boards verify {0}` replays their flight",
            folder.display()
        );
    }
    let RunVerdict { rounds, checks, frames, difference } = fabswarm_view::verify(folder)?;
    println!("{rounds} rounds executed again, {checks} digests and {frames} frames equal");
    Ok(match difference {
        None => ExitCode::SUCCESS,
        Some(difference) => {
            eprintln!("error: {difference}");
            ExitCode::from(DIFFERS)
        }
    })
}
