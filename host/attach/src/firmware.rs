//! Firmware that is ready to run.

pub(crate) mod board_file;
pub(crate) mod board_kind;
pub(crate) mod board_log;
pub(crate) mod boards_folder;
pub(crate) mod code_place;
pub(crate) mod firmware_crate;
pub(crate) mod flash_file;

use board_kind::BoardKind;
use board_log::LogTable;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::provisioning::BOARD_MEMBERS_LARGE;
use fabswarm_sim::task::Task;
use firmware_crate::FirmwareConfig;
use flash_file::FlashLayout;
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
    pub(crate) fn prepare(kind: BoardKind, needs: &FirmwareConfig) -> Result<Self, Diagnostic> {
        let emulator = kind.emulator()?;
        let image = kind.firmware_crate().build(needs)?;
        // Emulated boards log by defmt, native ones in plain text.
        let log_table = emulator.is_some().then(|| LogTable::of(kind.board(), &image)).transpose()?;
        Ok(Self { kind, image, emulator, layout: FlashLayout::of(kind)?, log_table })
    }
}

/// Most words of a decision, or of a problem's working memory, that boards can be built for.
pub(crate) const MOST_WORDS: usize = 512;

/// Checks that boards can be built for a task and a swarm, and returns what their firmware must have room for.
pub(crate) fn check_sizes(task: &Task<f32>, agents: usize) -> Result<FirmwareConfig, Diagnostic> {
    if agents > BOARD_MEMBERS_LARGE {
        let what = format!("the swarm has {agents} agents, and boards are built for {BOARD_MEMBERS_LARGE}");
        return Err(Diagnostic::new(what, "lower swarm.agents, or set swarm.boards to \"in-process\""));
    }
    let needs = FirmwareConfig::of(task, agents);
    if needs.words > MOST_WORDS {
        return Err(Diagnostic::new(
            format!("the task takes {} scalars, and boards are built for up to {MOST_WORDS}", needs.words),
            "lower the sizes of the problem (its features, classes or states), or set swarm.boards to \"in-process\"",
        ));
    }
    Ok(needs)
}
