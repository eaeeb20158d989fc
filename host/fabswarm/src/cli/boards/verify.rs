//! `fabswarm boards verify`: replay a flight on shadows, and compare bit for bit.

use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};
use fabswarm_attach::{FlightVerdict, verify};
use std::path::PathBuf;
use std::process::ExitCode;

/// The exit code of a flight that differs from its shadows.
const DIFFERS: u8 = 4;

pub(super) fn command() -> Command {
    Command::new("verify")
        .about("Replay the flight of a run with swarm.pace = \"slots\" on shadows, compare every digest, and say which could not be compared")
        .arg(
            Arg::new("run")
                .value_name("RUN")
                .required(true)
                .help("Folder of the run")
                .value_parser(value_parser!(PathBuf)),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let Some(folder) = matches.get_one::<PathBuf>("run") else { return Ok(ExitCode::from(2)) };
    let FlightVerdict { rounds, checks, uncompared, gaps, fault } = verify(folder)?;
    println!("{rounds} rounds, {checks} digests equal, {uncompared} not compared");
    if !gaps.is_empty() {
        let gaps: Vec<String> = gaps.iter().map(ToString::to_string).collect();
        println!(
            "not all rounds were reported: {}; neither can what these boards, and those that heard them, came to since be compared",
            gaps.join(", ")
        );
    }
    Ok(match fault {
        None => ExitCode::SUCCESS,
        Some(fault) => {
            eprintln!("error: {fault}");
            ExitCode::from(DIFFERS)
        }
    })
}
