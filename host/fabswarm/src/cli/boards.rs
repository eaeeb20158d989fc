//! `fabswarm boards`: what boards need, and what is plugged in.

pub(super) mod chips;
mod flash;
mod monitor;
mod plan;
mod ports;

use super::flags;
use anyhow::Result;
use clap::{ArgMatches, Command};
use std::process::ExitCode;

/// The exit code of a command that found no board, or failed on one.
const FAILED: u8 = 4;

/// The error of a build that reaches neither probes nor boot ROMs.
#[cfg(not(feature = "flash"))]
fn unreachable_chips(what: impl std::fmt::Display) -> anyhow::Error {
    let what = format!("{what}: this build of fabswarm reaches no debug probes and no boot ROMs");
    fabswarm_diagnostic::Diagnostic::new(
        what,
        "add the feature, `cargo run --release --features flash -- boards …`",
    )
    .into()
}

pub(super) fn command() -> Command {
    Command::new("boards")
        .about("Plan a swarm of boards, build and flash them, and list connected boards")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(flags::boards_dir())
        .subcommand(ports::list_command())
        .subcommand(plan::command())
        .subcommand(flash::build_command())
        .subcommand(flash::flash_command())
        .subcommand(ports::provision_command())
        .subcommand(ports::identify_command())
        .subcommand(monitor::command())
        .subcommand(ports::reset_command())
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    match matches.subcommand() {
        Some(("list", matches)) => ports::list(matches),
        Some(("build", matches)) => flash::build(matches),
        Some(("flash", matches)) => flash::flash(matches),
        Some(("provision", matches)) => ports::provision(matches),
        Some(("identify", matches)) => ports::identify(matches),
        Some(("monitor", matches)) => monitor::run(matches),
        Some(("reset", matches)) => ports::reset(matches),
        Some(("plan", matches)) => plan::run(matches),
        _ => unreachable!("clap asks for one of the sub-commands"),
    }
}
