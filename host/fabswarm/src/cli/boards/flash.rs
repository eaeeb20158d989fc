//! `fabswarm boards build | flash`: the firmware of real boards.

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use fabswarm_attach::{BoardKind, SwarmFile, image, uf2};
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) fn build_command() -> Command {
    Command::new("build").about("Build the firmware of the Pico (USB), and print where its image is")
}

pub(super) fn flash_command() -> Command {
    Command::new("flash")
        .about("Write image and page of agents as UF2 files: to the drives of Picos in their boot loaders, or to a folder")
        .arg(
            Arg::new("swarm")
                .long("swarm")
                .value_name("FILE")
                .required(true)
                .help("Swarm file, made with `fabswarm swarm new`")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("agent")
                .long("agent")
                .value_name("N")
                .help("The agent to flash; of several drives, the first gets it")
                .value_parser(value_parser!(usize)),
        )
        .arg(
            Arg::new("all")
                .long("all")
                .action(ArgAction::SetTrue)
                .help("Flash all agents: one drive each, or all files with --out")
                .conflicts_with("agent"),
        )
        .arg(
            Arg::new("drive")
                .long("drive")
                .value_name("FOLDER")
                .help("The drive of a boot loader [default: those that are mounted]")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("out")
                .long("out")
                .value_name("FOLDER")
                .help("Write agent-N.uf2 here instead, for a copy by hand")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("drive"),
        )
}

pub(super) fn build() -> Result<ExitCode> {
    println!("{}", image(BoardKind::PicoUsb)?.display());
    Ok(ExitCode::SUCCESS)
}

pub(super) fn flash(matches: &ArgMatches) -> Result<ExitCode> {
    let Some(path) = matches.get_one::<PathBuf>("swarm") else { bail!("--swarm is missing") };
    let swarm = SwarmFile::read(path)?;
    let agents = swarm.pages("pico")?.len();
    let chosen: Vec<usize> = match matches.get_one::<usize>("agent") {
        Some(&agent) => vec![agent],
        None if matches.get_flag("all") => (0..agents).collect(),
        None => bail!("which agent?\nhelp: add --agent N, or --all"),
    };
    let uf2_of = |agent: usize, image: &Path| swarm.pico_uf2(agent, image);
    if let Some(out) = matches.get_one::<PathBuf>("out") {
        let image = swarm.pico_image()?;
        for agent in chosen {
            let file = out.join(format!("agent-{agent}.uf2"));
            write_private(&file, &uf2_of(agent, &image)?)?;
            println!("{}", file.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let drives = match matches.get_one::<PathBuf>("drive") {
        Some(drive) if is_pico(drive) => vec![drive.clone()],
        Some(drive) if uf2::is_drive(drive) => bail!(
            "{} is the drive of another board: its {} says `{}` instead of `{}`\nhelp: only the Pico (RP2040) is flashed by UF2 file; see docs/boards.md for others",
            drive.display(),
            uf2::INFO_FILE,
            uf2::drive_board(drive).unwrap_or_default(),
            uf2::PICO_DRIVE
        ),
        Some(drive) => bail!(
            "{} is not the drive of a boot loader: it has no {}\nhelp: hold BOOTSEL while you plug in the Pico",
            drive.display(),
            uf2::INFO_FILE
        ),
        None => uf2::drives().into_iter().filter(|drive| is_pico(drive)).collect(),
    };
    if drives.is_empty() {
        bail!(
            "no Pico is in its boot loader\nhelp: hold BOOTSEL while you plug in the Pico, and mount its drive; or use --out FOLDER"
        );
    }
    let image = swarm.pico_image()?;
    for (agent, drive) in chosen.iter().zip(&drives) {
        let name = format!("agent-{agent}.uf2");
        let is_verified = uf2::write_to_drive(drive, &name, &uf2_of(*agent, &image)?)
            .with_context(|| format!("cannot write to {}", drive.display()))?;
        let how = if is_verified { "read back and equal" } else { "the board has restarted with it" };
        println!("agent {agent}: {} ({how})", drive.display());
    }
    if let Some(left) = chosen.get(drives.len()..).filter(|left| !left.is_empty()) {
        println!(
            "{} agents are left: plug in more boards, and flash them with --agent N from {} on",
            left.len(),
            left[0]
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a folder is the drive of a Pico's boot loader.
fn is_pico(drive: &Path) -> bool {
    uf2::drive_board(drive).as_deref() == Some(uf2::PICO_DRIVE)
}

/// Writes a file that only the user can read: it holds the swarm's key.
fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        use std::io::Write;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(bytes)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
