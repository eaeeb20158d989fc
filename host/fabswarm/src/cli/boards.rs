//! `fabswarm boards`: what boards need, and what they did.

mod plan;
mod verify;

use anyhow::Result;
use clap::{ArgMatches, Command};
use std::process::ExitCode;

pub(super) fn command() -> Command {
    Command::new("boards")
        .about("Plan a swarm of boards, and verify what it did")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(plan::command())
        .subcommand(verify::command())
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    match matches.subcommand() {
        Some(("plan", matches)) => plan::run(matches),
        Some(("verify", matches)) => verify::run(matches),
        _ => unreachable!("clap asks for one of the sub-commands"),
    }
}
