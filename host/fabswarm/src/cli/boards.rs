//! `fabswarm boards`: what boards need, and what is plugged in.

pub(super) mod chips;
mod flash;
mod monitor;
mod plan;
mod ports;

use super::{NamedCommand, flags};
use anyhow::Result;
use clap::{ArgMatches, Command};
#[cfg(feature = "flash")]
use fabswarm_attach::{FlashImage, ImageFormat};
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

/// How chips of this kind are read and flashed, whose image is `image`.
#[cfg(feature = "flash")]
fn flash_job(board: &fabswarm_attach::BoardFile, image: FlashImage) -> Result<fabswarm_flash::FlashJob> {
    let tool = if board.format == ImageFormat::EspIdf { "espflash" } else { "probe-rs" };
    board.flash_job(image).ok_or_else(
        || fault!("boards/{}/board.toml names no chip", board.name; "write `chip`, as {tool} calls it"),
    )
}

/// The commands of `fabswarm boards`.
const COMMANDS: [NamedCommand; 8] = [
    ("list", ports::list_command, ports::list),
    ("plan", plan::command, plan::run),
    ("build", flash::build_command, flash::build),
    ("flash", flash::flash_command, flash::flash),
    ("provision", ports::provision_command, ports::provision),
    ("identify", ports::identify_command, ports::identify),
    ("monitor", monitor::command, monitor::run),
    ("reset", ports::reset_command, ports::reset),
];

pub(super) fn command() -> Command {
    Command::new("boards")
        .about("Plan a swarm of boards, build and flash them, and list connected boards")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(flags::boards_dir())
        .subcommands(COMMANDS.map(|(_, command, _)| command()))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let (name, matches) = matches.subcommand().expect("clap asks for one of the sub-commands");
    let (.., run) = COMMANDS.iter().find(|(known, ..)| *known == name).expect("clap knows no other");
    run(matches)
}
