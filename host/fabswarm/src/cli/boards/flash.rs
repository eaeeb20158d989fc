//! `fabswarm boards build | flash`: the firmware of real boards.

#[cfg(feature = "flash")]
mod by_chip;
mod drive;

use super::super::flags;
use super::ports::swarm_argument;
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use fabswarm_attach::{BoardFile, FlashImage, ImageFormat, SwarmFile, SwarmPages};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The board that is meant where none is named.
const USUAL_BOARD: &str = "pico";

pub(super) fn build_command() -> Command {
    let out = "Write BOARD.elf here, and BOARD.uf2 or BOARD.hex where the board's tools take one";
    let board = Arg::new("board").help("A folder of boards/; the Pico's image is the one with USB");
    Command::new("build")
        .about("Build the firmware of a board, and print where its image is")
        .arg(board.value_name("BOARD").default_value(USUAL_BOARD))
        .arg(flags::path_option("out", "FOLDER", out))
}

pub(super) fn flash_command() -> Command {
    let board = "The kind of board, a folder of boards/: its board.toml says how it is flashed";
    let agent = "The agent to flash; of several drives, the first gets it";
    let all = "Flash all agents: a drive, a probe or a port each, or all files with --out";
    let probe = "Flash through debug probes, a board with a drive too";
    let out = "Write agent-N.uf2 here instead, for a copy by hand";
    let drive = "The drive of a boot loader [default: all that are mounted]";
    let port = "Serial ports of ESP32s: a port, a path with `*`, or a part of a port's name [default: all with Espressif's USB]";
    Command::new("flash")
        .about("Write image and provisioning record to boards: by their boot loaders' drives, through debug probes, by serial ports, or as files")
        .arg(swarm_argument())
        .arg(flags::option("board", "BOARD", board).default_value(USUAL_BOARD))
        .arg(flags::option("agent", "N", agent).value_parser(value_parser!(usize)))
        .arg(flags::switch("all", all).conflicts_with("agent"))
        .arg(flags::switch("probe", probe).conflicts_with_all(["drive", "out"]))
        .arg(flags::path_option("drive", "FOLDER", drive))
        .arg(flags::path_option("out", "FOLDER", out).conflicts_with("drive"))
        .arg(flags::option("port", "PATTERN", port).conflicts_with_all(["drive", "out", "probe"]))
}

/// The boards and pages to be flashed.
struct FlashConfig<'a> {
    board: BoardFile,
    /// The swarm file.
    file: &'a Path,
    pages: SwarmPages<'a>,
    /// The agents to flash.
    chosen: Vec<usize>,
}

fn board(matches: &ArgMatches) -> Result<BoardFile> {
    let name = matches.get_one::<String>("board").map_or(USUAL_BOARD, String::as_str);
    Ok(BoardFile::read(name)?)
}

pub(super) fn build(matches: &ArgMatches) -> Result<ExitCode> {
    let board = board(matches)?;
    let elf = board.build()?;
    let Some(out) = matches.get_one::<PathBuf>("out") else {
        outln!("{}", elf.display());
        return Ok(ExitCode::SUCCESS);
    };
    let mut files = vec![("elf", fs::read(&elf).with_context(|| format!("cannot read {}", elf.display()))?)];
    files.extend(board.image_file(&FlashImage::read(&elf)?)?);
    for (suffix, bytes) in files {
        let path = out.join(format!("{}.{suffix}", board.name));
        let written = fs::create_dir_all(out).and_then(|()| fs::write(&path, bytes));
        written.map_err(
            |error| fault!("cannot write {}: {error}", path.display(); "choose another folder with --out"),
        )?;
        outln!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn flash(matches: &ArgMatches) -> Result<ExitCode> {
    let Some(path) = matches.get_one::<PathBuf>("swarm") else { bail!("--swarm is missing") };
    let board = board(matches)?;
    let swarm = SwarmFile::read(path)?;
    let pages = swarm.prepare()?;
    let chosen: Vec<usize> = match matches.get_one::<usize>("agent") {
        Some(&agent) => vec![agent],
        None if matches.get_flag("all") => (0..pages.agents()).collect(),
        None => bail!(fault!("which agent?"; "add --agent N, or --all")),
    };
    // Refused before anything is built.
    for &agent in &chosen {
        pages.page(&board.name, agent, 1)?;
    }
    if let Some(radio) = &board.radio {
        let name = &board.name;
        eprintln!("{name} sends by {radio}; [radio] of boards/{name}/board.toml sets it");
    }
    if let Some(note) = &board.flash_note {
        eprintln!("note: {note}");
    }
    let config = FlashConfig { board, file: path, pages, chosen };
    let drive = matches.get_one::<PathBuf>("drive");
    let port = matches.get_one::<String>("port");
    let (has_out, is_by_probe) = (matches.contains_id("out"), matches.get_flag("probe"));
    let name = &config.board.name;
    match config.board.format {
        ImageFormat::EspIdf if has_out || is_by_probe || drive.is_some() => {
            bail!(fault!("{name} is flashed by its serial port"; "leave out --drive, --out and --probe"))
        }
        #[cfg(feature = "flash")]
        ImageFormat::EspIdf => return by_chip::flash_by_port(&config, port.map(String::as_str)),
        #[cfg(not(feature = "flash"))]
        ImageFormat::EspIdf => return Err(super::unreachable_chips(name)),
        ImageFormat::Plain if port.is_some() => {
            bail!(fault!(
                "{name} is not flashed by a serial port";
                "leave out --port, or choose an ESP32 with --board"
            ))
        }
        ImageFormat::Plain => {}
    }
    match matches.get_one::<PathBuf>("out") {
        Some(out) => drive::write_files(&config, out),
        None if drive.is_some() || (config.board.uf2.is_some() && !is_by_probe) => {
            drive::flash(&config, drive.map(PathBuf::as_path))
        }
        #[cfg(feature = "flash")]
        None => by_chip::flash_by_probe(&config),
        #[cfg(not(feature = "flash"))]
        None => Err(super::unreachable_chips(name)),
    }
}
