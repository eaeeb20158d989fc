//! `fabswarm watch`: the page of a run that another process makes, or has made.

use super::live;
use anyhow::{Result, bail};
use clap::{ArgMatches, Command};
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) fn command() -> Command {
    Command::new("watch")
        .about("Show a run in the browser while another process makes it, at most a second later")
        .arg(live::folder())
        .arg(live::address())
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let Some(folder) = matches.get_one::<PathBuf>("run") else { bail!("RUN is missing") };
    live::watch(folder, matches)?;
    Ok(ExitCode::SUCCESS)
}
