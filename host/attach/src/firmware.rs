//! Firmware that is ready to run.

use super::{
    BoardKind, board_log::LogTable, firmware_crate::FirmwareNeeds, flash_file::FlashLayout, pico, qemu,
};
use fabswarm_diagnostic::Diagnostic;
use std::path::PathBuf;

/// The firmware that all boards of one kind run.
#[derive(Debug)]
pub(super) struct Firmware {
    pub(super) kind: BoardKind,
    pub(super) image: PathBuf,
    /// The emulator, unless the image is a program of the host.
    pub(super) emulator: Option<PathBuf>,
    pub(super) layout: FlashLayout,
    /// Decodes the boards' logs, unless they are plain text.
    pub(super) log_table: Option<LogTable>,
}

impl Firmware {
    /// Builds the firmware for these needs, unless it is up to date, and finds the emulator for it.
    pub(super) fn prepare(kind: BoardKind, needs: &FirmwareNeeds) -> Result<Self, Diagnostic> {
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
