//! `fabswarm boards list | provision | reset | identify`: boards that are plugged in.

use super::super::flags;
use super::FAILED;
use super::chips::{ChipLine, board_argument, chips};
use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command};
use fabswarm_attach::serial::{self, FoundBoard, SerialError};
use fabswarm_attach::{Rig, SwarmFile, uf2};
use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) fn ports_argument() -> Arg {
    Arg::new("ports")
        .value_name("PATTERN")
        .help("A port, a path with `*`, or a part of a port's name [default: all USB serial ports]")
}

pub(super) fn swarm_argument() -> Arg {
    flags::path_option("swarm", "FILE", "Swarm file, made with `fabswarm swarm new`").required(true)
}

pub(super) fn list_command() -> Command {
    Command::new("list")
        .about("List serial ports, boot loader drives and debug probes: board, chip, build, agent or fault")
        .arg(ports_argument())
        .arg(board_argument())
}

pub(super) fn provision_command() -> Command {
    Command::new("provision")
        .about(
            "Write each board its provisioning record over the cable, restart it, and check who it is then",
        )
        .arg(swarm_argument())
        .arg(ports_argument())
}

pub(super) fn reset_command() -> Command {
    Command::new("reset")
        .about("Restart boards; a board that keeps its own time ends its trial and waits for a provisioning record")
        .arg(ports_argument())
}

pub(super) fn identify_command() -> Command {
    Command::new("identify").about("Turn on the light of boards").arg(ports_argument())
}

pub(super) fn ports(matches: &ArgMatches) -> Vec<PathBuf> {
    serial::ports(matches.get_one::<String>("ports").map(String::as_str))
}

pub(super) fn list(matches: &ArgMatches) -> Result<ExitCode> {
    let (ports, drives) = (ports(matches), uf2::drives());
    let outcomes = serial::identify_all(&ports);
    // After the firmware was asked: a boot ROM answers only when the firmware is stopped.
    let chips = chips(matches.get_one("board"), matches.get_one::<String>("ports").map(String::as_str))?;
    if ports.is_empty() && drives.is_empty() && chips.is_empty() {
        outln!("no serial ports, no boot loader drives, no debug probes");
        outln!(
            "help: plug in a board; hold BOOTSEL while you plug in a Pico to get its drive; see `fabswarm doctor`"
        );
        print_absent();
        return Ok(ExitCode::SUCCESS);
    }
    for (path, outcome) in ports.iter().zip(outcomes) {
        let trouble = |trouble: SerialError| trouble.to_string().replace('\n', "\n  ");
        outln!("{}\n  {}", path.display(), outcome.map_or_else(trouble, |board| describe(&board)));
    }
    for drive in drives {
        let board = uf2::drive_board(&drive).unwrap_or_else(|| "unknown board".to_owned());
        outln!("{}\n  boot loader of {board}; flash it with `fabswarm boards flash`", drive.display());
    }
    for ChipLine { name, what, .. } in chips {
        outln!("{name}\n  {}", what.replace('\n', "\n  "));
    }
    print_absent();
    Ok(ExitCode::SUCCESS)
}

/// Says what this build cannot list.
fn print_absent() {
    if cfg!(not(feature = "flash")) {
        outln!("(debug probes are not looked for: this build lacks the feature `flash`)");
        outln!("help: add the feature, `cargo run --release --features flash -- boards …`");
    }
}

fn describe(board: &FoundBoard) -> String {
    let FoundBoard { name, chip, build, reset, panic, page, .. } = board;
    let chip = chip.map_or_else(|| "without a number".to_owned(), |chip| format!("chip {chip:016x}"));
    let version = if *build == fabswarm_attach::BUILD_ID { "this build" } else { "another build" };
    let who = match page {
        Ok(identity) => format!("agent {}, boot {}", identity.agent, identity.boot),
        Err(error) => error.to_string(),
    };
    let before = panic.as_ref().map(|message| format!("\n  its last run ended in a panic: {message}"));
    let before = before.unwrap_or_default();
    format!("{name}, {chip}, {version} ({build:016x}), started {reset}: {who}{before}")
}

/// The chosen ports, of which there must be some.
pub(super) fn some_ports(matches: &ArgMatches, rig: Option<&Rig>) -> Result<Vec<PathBuf>> {
    let ports = Rig::ports(rig, matches.get_one::<String>("ports").map(String::as_str));
    if !ports.is_empty() {
        return Ok(ports);
    }
    let what = match matches.get_one::<String>("ports") {
        None => "there are no serial ports".to_owned(),
        Some(pattern) if pattern.contains('*') => format!("there are no serial ports `{pattern}`"),
        Some(port) => format!("there is no serial port `{port}`"),
    };
    let others: Vec<String> = serial::ports(None).iter().map(|port| port.display().to_string()).collect();
    match &others[..] {
        [] => bail!(fault!("{what}"; "plug in a board, or name a port; see `fabswarm doctor`")),
        others => bail!(fault!("{what}"; "the ports are {}", others.join(", "))),
    }
}

/// Prints what became of each port.
pub(super) fn report(
    ports: &[PathBuf],
    outcomes: impl IntoIterator<Item = Result<String, impl Display>>,
) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for (path, outcome) in ports.iter().zip(outcomes) {
        match outcome {
            Ok(what) => outln!("{}: {what}", path.display()),
            Err(trouble) => {
                eprintln!("error: {trouble}");
                code = ExitCode::from(FAILED);
            }
        }
    }
    code
}

/// Applies `act` to what was found on each of the chosen ports and prints what became of it.
fn on_boards(
    matches: &ArgMatches,
    rig: Option<&Rig>,
    act: impl Fn(Result<FoundBoard, SerialError>) -> Result<String, SerialError>,
) -> Result<ExitCode> {
    let ports = some_ports(matches, rig)?;
    Ok(report(&ports, serial::identify_all(&ports).into_iter().map(act)))
}

pub(super) fn provision(matches: &ArgMatches) -> Result<ExitCode> {
    let Some(path) = matches.get_one::<PathBuf>("swarm") else { bail!("--swarm is missing") };
    let swarm = SwarmFile::read(path)?;
    let pages = swarm.prepare()?;
    // Made before anything is written.
    pages.check("native")?;
    on_boards(matches, pages.rig.as_ref(), |outcome| {
        let board = outcome?;
        let Some(agent) = board.chip.and_then(|chip| swarm.agent_of(chip)) else {
            let chip = board.chip.map_or_else(String::new, |chip| format!(" {chip:016x}"));
            return Ok(format!("chip{chip} is not under [chips] of the swarm file: left as it is"));
        };
        let boot = swarm.take_boot(path, agent, 1);
        let page = boot.and_then(|boot| pages.page(&board.name, agent, boot));
        let page = page.map_err(|error| serial::page_refusal(&board.path, &error.to_string()))?;
        let identity = fabswarm_attach::provision_board(&board, &page)?;
        Ok(format!("agent {}, boot {}, record {:08x}", identity.agent, identity.boot, identity.page_crc))
    })
}

pub(super) fn reset(matches: &ArgMatches) -> Result<ExitCode> {
    on_boards(matches, None, |outcome| {
        if let Err(SerialError::Running { path, baud, .. }) = &outcome {
            let waits = "restarted; its trial is over, and it waits for a provisioning record".to_owned();
            return Ok(serial::end_trial(path, *baud).map(|()| waits)?);
        }
        Ok(serial::reset(&outcome?).map(|()| "restarted".to_owned())?)
    })
}

pub(super) fn identify(matches: &ArgMatches) -> Result<ExitCode> {
    on_boards(matches, None, |outcome| {
        // One in the middle of a trial has a light too.
        let (path, baud, what) = match &outcome {
            Err(SerialError::Running { path, baud, agent, round, .. }) => {
                (path, *baud, format!("runs agent {agent}, in round {round}"))
            }
            Ok(board) => (&board.path, board.baud, describe(board)),
            Err(trouble) => return Err(trouble.clone()),
        };
        Ok(serial::light(path, baud).map(|()| format!("{what}; its light is on"))?)
    })
}
