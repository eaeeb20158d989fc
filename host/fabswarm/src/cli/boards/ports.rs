//! `fabswarm boards list | provision | reset | identify | monitor`: boards that are plugged in.

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use fabswarm_attach::packet::Packet;
use fabswarm_attach::serial::{self, FoundBoard, SerialError};
use fabswarm_attach::{SwarmFile, uf2};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The exit code of a command that found no board, or failed on one.
const FAILED: u8 = 4;

fn ports_argument() -> Arg {
    Arg::new("ports")
        .value_name("PATTERN")
        .help("A port, a path with `*`, or a part of a port's name [default: all USB serial ports]")
}

fn swarm_argument() -> Arg {
    Arg::new("swarm")
        .long("swarm")
        .value_name("FILE")
        .required(true)
        .help("Swarm file, made with `fabswarm swarm new`")
        .value_parser(value_parser!(PathBuf))
}

pub(super) fn list_command() -> Command {
    Command::new("list")
        .about("List serial ports and boot loader drives: board, chip, build, agent, or what is wrong")
        .arg(ports_argument())
}

pub(super) fn provision_command() -> Command {
    Command::new("provision")
        .about("Write each board its page over the cable, restart it, and check who it is then")
        .arg(swarm_argument())
        .arg(ports_argument())
}

pub(super) fn reset_command() -> Command {
    Command::new("reset").about("Restart boards, whatever they do").arg(ports_argument())
}

pub(super) fn identify_command() -> Command {
    Command::new("identify").about("Turn on the light of boards").arg(ports_argument())
}

pub(super) fn monitor_command() -> Command {
    Command::new("monitor")
        .about("Print what boards say: boot packets and telemetry")
        .arg(ports_argument())
        .arg(
            Arg::new("seconds")
                .long("seconds")
                .value_name("S")
                .help("How long")
                .default_value("10")
                .value_parser(value_parser!(u64).range(1..=86_400)),
        )
}

fn ports(matches: &ArgMatches) -> Vec<PathBuf> {
    serial::ports(matches.get_one::<String>("ports").map(String::as_str))
}

pub(super) fn list(matches: &ArgMatches) -> Result<ExitCode> {
    let (ports, drives) = (ports(matches), uf2::drives());
    if ports.is_empty() && drives.is_empty() {
        println!("no serial ports and no boot loader drives");
        println!(
            "help: plug in a board; hold BOOTSEL while you plug in a Pico to get its drive; see `fabswarm doctor`"
        );
        return Ok(ExitCode::SUCCESS);
    }
    for (path, outcome) in ports.iter().zip(serial::identify_all(&ports)) {
        match outcome {
            Ok(board) => println!("{}\n  {}", path.display(), describe(&board)),
            Err(trouble) => println!("{}\n  {}", path.display(), trouble.to_string().replace('\n', "\n  ")),
        }
    }
    for drive in drives {
        let board = uf2::drive_board(&drive).unwrap_or_else(|| "unknown board".to_owned());
        println!("{}\n  boot loader of {board}; flash it with `fabswarm boards flash`", drive.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(board: &FoundBoard) -> String {
    let FoundBoard { name, chip, build, page, .. } = board;
    let chip = chip.map_or_else(|| "without a number".to_owned(), |chip| format!("chip {chip:016x}"));
    let version = if *build == fabswarm_attach::BUILD_ID { "this build" } else { "another build" };
    let who = match page {
        Ok(identity) => format!("agent {}, boot {}", identity.agent, identity.boot),
        Err(error) => error.to_string(),
    };
    format!("{name}, {chip}, {version} ({build:016x}): {who}")
}

/// Applies `act` to every board on the chosen ports and prints what became of it.
fn on_boards(
    matches: &ArgMatches,
    act: impl Fn(&FoundBoard) -> Result<String, SerialError>,
) -> Result<ExitCode> {
    let ports = ports(matches);
    if ports.is_empty() {
        bail!("there are no serial ports\nhelp: plug in a board, or name a port; see `fabswarm doctor`");
    }
    let mut code = ExitCode::SUCCESS;
    for outcome in serial::identify_all(&ports) {
        let done = outcome.and_then(|board| Ok((act(&board)?, board)));
        match done {
            Ok((what, board)) => println!("{}: {what}", board.path.display()),
            Err(trouble) => {
                eprintln!("error: {trouble}");
                code = ExitCode::from(FAILED);
            }
        }
    }
    Ok(code)
}

pub(super) fn provision(matches: &ArgMatches) -> Result<ExitCode> {
    let Some(path) = matches.get_one::<PathBuf>("swarm") else { bail!("--swarm is missing") };
    let swarm = SwarmFile::read(path)?;
    // Made before anything is written.
    swarm.pages("native")?;
    on_boards(matches, |board| {
        let Some(agent) = board.chip.and_then(|chip| swarm.agent_of(chip)) else {
            return Ok("not in the swarm file: left as it is".to_owned());
        };
        let refuse = |reason: String| SerialError::Page { path: board.path.clone(), reason };
        let pages = swarm.pages(&board.name).map_err(|error| refuse(error.to_string()))?;
        let page = pages.get(agent).ok_or_else(|| refuse(format!("the swarm has no agent {agent}")))?;
        let identity = serial::provision(board, page)?;
        Ok(format!("agent {}, boot {}, page {:08x}", identity.agent, identity.boot, identity.page_crc))
    })
}

pub(super) fn reset(matches: &ArgMatches) -> Result<ExitCode> {
    on_boards(matches, |board| serial::reset(board).map(|()| "restarted".to_owned()))
}

pub(super) fn identify(matches: &ArgMatches) -> Result<ExitCode> {
    on_boards(matches, |board| serial::light(board).map(|()| format!("{}; its light is on", describe(board))))
}

pub(super) fn monitor(matches: &ArgMatches) -> Result<ExitCode> {
    let seconds = matches.get_one::<u64>("seconds").copied().unwrap_or(10);
    on_boards(matches, |board| {
        let name = board.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut packets = 0;
        serial::monitor(board, Duration::from_secs(seconds), |packet| {
            packets += 1;
            match packet {
                Packet::Boot(boot) => println!("{name}  boot       {:?}", boot.page),
                Packet::Telemetry(telemetry, _) => println!(
                    "{name}  telemetry  agent {}, round {}, epoch {}, digest {:08x}, heard {}, refused {}",
                    telemetry.agent,
                    telemetry.round,
                    telemetry.epoch,
                    telemetry.digest,
                    telemetry.heard,
                    telemetry.refused
                ),
                Packet::Frame(frame) => println!("{name}  frame      {} bytes", frame.len()),
                other => println!("{name}  {other:?}"),
            }
        })?;
        Ok(format!("{packets} packets in {seconds} s"))
    })
}
