//! Boards whose boot loaders take UF2 files.

use super::FlashConfig;
use anyhow::{Context, Result, bail};
use fabswarm_attach::{FlashImage, uf2};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::record::counted;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes one file per agent.
pub(super) fn write_files(config: &FlashConfig, out: &Path) -> Result<ExitCode> {
    config.board.drive()?;
    let image = FlashImage::read(&config.pages.image(&config.board)?)?;
    for &agent in &config.chosen {
        let file = out.join(file_name(agent));
        write_private(&file, &uf2_of(config, agent, &image)?)?;
        outln!("{}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes each agent to a drive: to `named`, or to those that are mounted.
pub(super) fn flash(config: &FlashConfig, named: Option<&Path>) -> Result<ExitCode> {
    let expected = config.board.drive()?.drive.as_str();
    let is_expected = |drive: &Path| uf2::drive_board(drive).as_deref() == Some(expected);
    let board = &config.board.name;
    let drives: Vec<PathBuf> = match named {
        Some(drive) if is_expected(drive) => vec![drive.to_owned()],
        Some(drive) if uf2::is_drive(drive) => match uf2::drive_board(drive) {
            Some(other) => bail!(fault!(
                "{} is the drive of another board: its {} says `{other}`, and that of {board} `{expected}`",
                drive.display(), uf2::INFO_FILE;
                "choose its board with --board"
            )),
            None => bail!(fault!(
                "{} does not say what board it is: its {} has no line `Board-ID`", drive.display(), uf2::INFO_FILE;
                "unplug the board, and hold BOOTSEL while you plug it in"
            )),
        },
        Some(drive) => bail!(fault!(
            "{} is not the drive of a boot loader: it has no {}", drive.display(), uf2::INFO_FILE;
            "hold BOOTSEL while you plug in the Pico"
        )),
        None => uf2::drives().into_iter().filter(|drive| is_expected(drive)).collect(),
    };
    if drives.is_empty() {
        bail!(fault!(
            "no {board} is in its boot loader";
            "hold BOOTSEL while you plug it in, and mount its drive {expected}; or use --out FOLDER"
        ));
    }
    let image = FlashImage::read(&config.pages.image(&config.board)?)?;
    let mut code = ExitCode::SUCCESS;
    for (agent, drive) in config.chosen.iter().zip(&drives) {
        let file = uf2_of(config, *agent, &image)?;
        // A board that fails holds up no other.
        match uf2::write_to_drive(drive, &file_name(*agent), &file) {
            Ok(true) => outln!("agent {agent}: {} (read back and equal)", drive.display()),
            Ok(false) => outln!(
                "agent {agent}: {} (written, and gone as that of a board that restarts: `fabswarm boards list` tells who it is)",
                drive.display()
            ),
            Err(error) => {
                eprintln!("error: agent {agent}: {error}");
                code = ExitCode::from(super::super::FAILED);
            }
        }
    }
    if let Some(left) = config.chosen.get(drives.len()..).filter(|left| !left.is_empty()) {
        outln!(
            "left: {}; plug in more boards, and flash them with --agent N from {} on",
            counted(left.len(), "agent"),
            left[0]
        );
    }
    Ok(code)
}

/// The file of an agent. A boot loader does not tell what its board has counted, which may have been erased too.
fn uf2_of(config: &FlashConfig, agent: usize, image: &FlashImage) -> Result<Vec<u8>, Diagnostic> {
    let FlashConfig { board, file, pages, .. } = config;
    pages.uf2(board, agent, image, pages.swarm.take_boot(file, agent, 1)?)
}

fn file_name(agent: usize) -> String {
    format!("agent-{agent}.uf2")
}

/// Writes a file that only the user can read: it holds the swarm's key.
fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        use std::io::Write;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        // A file that is there may be readable for others, or a link to one: it is replaced.
        let mut draft = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
        draft.write_all(bytes)?;
        draft.persist(path).map(drop).map_err(|error| error.error)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
