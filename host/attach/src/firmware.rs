//! Firmware that is ready to run.

pub(crate) mod board_file;
pub(crate) mod board_kind;
pub(crate) mod code_place;
pub(crate) mod firmware_crate;
pub(crate) mod flash_file;

use crate::BoardKind;
use crate::firmware::{firmware_crate::FirmwareNeeds, flash_file::FlashLayout};
use crate::machine::{board_log::LogTable, pico, qemu};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::provisioning::BOARD_MEMBERS_LARGE;
use fabswarm_sim::task::Task;
use std::env;
use std::path::PathBuf;

/// The firmware that all boards of one kind run.
#[derive(Debug)]
pub(crate) struct Firmware {
    pub(crate) kind: BoardKind,
    pub(crate) image: PathBuf,
    /// The emulator, unless the image is a program of the host.
    pub(crate) emulator: Option<PathBuf>,
    pub(crate) layout: FlashLayout,
    /// Decodes the boards' logs, unless they are plain text.
    pub(crate) log_table: Option<LogTable>,
}

impl Firmware {
    /// Builds the firmware for these needs, unless it is up to date, and finds the emulator for it.
    pub(crate) fn prepare(kind: BoardKind, needs: &FirmwareNeeds) -> Result<Self, Diagnostic> {
        let emulator = match kind {
            BoardKind::Qemu | BoardKind::QemuUart => Some(qemu::emulator()?),
            BoardKind::Pico | BoardKind::PicoUsb => Some(pico::emulator()?),
            BoardKind::Native => None,
        };
        let image = kind.firmware_crate().build(needs)?;
        let log_table = match kind {
            BoardKind::Qemu | BoardKind::QemuUart | BoardKind::Pico | BoardKind::PicoUsb => {
                Some(LogTable::of(kind.board(), &image)?)
            }
            BoardKind::Native => None,
        };
        Ok(Self { kind, image, emulator, layout: FlashLayout::of(kind)?, log_table })
    }
}

/// The path of a program that the user's PATH leads to.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Most words of a decision, or of a problem's working memory, that boards can be built for.
pub(crate) const MOST_WORDS: usize = 512;

/// Checks that boards can be built for a task and a swarm, and returns what their firmware must have room for.
pub(crate) fn check_sizes(task: &Task<f32>, agents: usize) -> Result<FirmwareNeeds, Diagnostic> {
    if agents > BOARD_MEMBERS_LARGE {
        return Err(Diagnostic::new(
            format!("the swarm has {agents} agents, and boards are built for {BOARD_MEMBERS_LARGE}"),
            "lower swarm.agents, or set swarm.boards to \"in-process\"",
        ));
    }
    let needs = FirmwareNeeds::of(task, agents);
    if needs.words > MOST_WORDS {
        return Err(Diagnostic::new(
            format!("the task takes {} words, and boards are built for up to {MOST_WORDS}", needs.words),
            "lower the sizes of the problem (its features, classes or states), or set swarm.boards to \"in-process\"",
        ));
    }
    Ok(needs)
}
