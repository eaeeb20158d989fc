//! The kinds of boards that the host can start.

use super::firmware_crate::{FirmwareCrate, FirmwareNeeds};
use crate::machine::{native, packet_stream::PacketFraming, pico, qemu};
use fabswarm_diagnostic::Diagnostic;
use std::path::PathBuf;

/// A kind of board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoardKind {
    /// A Cortex-M4F emulated by QEMU, with Ethernet as its radio.
    Qemu,
    /// The same with a serial line as its radio.
    QemuUart,
    /// A Raspberry Pi Pico emulated by rp2040js, with its UART as its radio.
    Pico,
    /// The same with its USB port as its radio.
    PicoUsb,
    /// A Linux process.
    Native,
}

impl BoardKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 5] = [Self::Qemu, Self::QemuUart, Self::Pico, Self::PicoUsb, Self::Native];

    /// The name in the board's `board.toml`.
    #[must_use]
    pub const fn board(self) -> &'static str {
        self.firmware_crate().board
    }

    /// The name in a [`Placement`](crate::Placement).
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::QemuUart => "qemu-uart",
            Self::Pico => "pico",
            Self::PicoUsb => "pico-usb",
            Self::Native => "native",
        }
    }

    pub(crate) const fn framing(self) -> PacketFraming {
        match self {
            Self::Qemu | Self::Native => PacketFraming::Ethernet,
            Self::QemuUart | Self::Pico | Self::PicoUsb => PacketFraming::Serial,
        }
    }

    pub(crate) const fn firmware_crate(self) -> FirmwareCrate<'static> {
        match self {
            Self::Qemu => qemu::FIRMWARE,
            Self::QemuUart => qemu::UART_FIRMWARE,
            Self::Pico => pico::FIRMWARE,
            Self::PicoUsb => pico::USB_FIRMWARE,
            Self::Native => native::FIRMWARE,
        }
    }
}

/// Builds the firmware that boards of `kind` run in the default scenario, unless it is up to date, and returns the path of its image.
///
/// # Errors
/// If it does not build.
pub fn image(kind: BoardKind) -> Result<PathBuf, Diagnostic> {
    kind.firmware_crate().build(&FirmwareNeeds::USUAL)
}

/// Returns the paths of the emulator and of the program that counts instructions in it; builds the latter unless it is up to date.
///
/// # Errors
/// If the emulator is not installed, or the program does not build.
pub fn counting_program() -> Result<(PathBuf, PathBuf), Diagnostic> {
    let image = qemu::COUNTING_FIRMWARE.build(&FirmwareNeeds::USUAL)?;
    Ok((qemu::emulator()?, image.with_file_name("instructions")))
}
