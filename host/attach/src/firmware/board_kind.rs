//! The kinds of boards that the host can start.

use super::boards_folder::boards_folder;
use super::firmware_crate::{FirmwareConfig, FirmwareCrate};
use fabswarm_diagnostic::Diagnostic;
use std::env;
use std::path::PathBuf;

/// How packets are delimited in the socket's byte stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketFraming {
    /// A length, then an Ethernet frame.
    Ethernet,
    /// The framing of the serial line, see [`stream`](fabswarm_shared::wire::stream).
    Serial,
}

/// A kind of board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoardKind {
    /// A Cortex-M4F emulated by QEMU, with Ethernet as its radio.
    Qemu,
    /// The same with a serial line as its radio.
    QemuUart,
    /// [`Qemu`](Self::Qemu) with a simulated sensor; the host records its decisions.
    QemuSensor,
    /// A Raspberry Pi Pico emulated by rp2040js, with its UART as its radio.
    Pico,
    /// The same with its USB port as its radio.
    PicoUsb,
    /// A Linux process.
    Native,
}

impl BoardKind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Qemu, Self::QemuUart, Self::QemuSensor, Self::Pico, Self::PicoUsb, Self::Native];

    /// Whether QEMU emulates it.
    pub(crate) const fn is_qemu(self) -> bool {
        matches!(self, Self::Qemu | Self::QemuUart | Self::QemuSensor)
    }

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
            Self::QemuSensor => "qemu-sensor",
            Self::Pico => "pico",
            Self::PicoUsb => "pico-usb",
            Self::Native => "native",
        }
    }

    pub(crate) const fn framing(self) -> PacketFraming {
        match self {
            Self::Qemu | Self::QemuSensor | Self::Native => PacketFraming::Ethernet,
            Self::QemuUart | Self::Pico | Self::PicoUsb => PacketFraming::Serial,
        }
    }

    pub(crate) const fn firmware_crate(self) -> FirmwareCrate<'static> {
        let (board, target, feature) = match self {
            Self::Qemu => ("mps2-an386", Some("thumbv7em-none-eabihf"), None),
            Self::QemuUart => ("mps2-an386", Some("thumbv7em-none-eabihf"), Some("uart")),
            Self::QemuSensor => ("mps2-an386", Some("thumbv7em-none-eabihf"), Some("sensor")),
            Self::Pico => ("pico", Some("thumbv6m-none-eabi"), None),
            Self::PicoUsb => ("pico", Some("thumbv6m-none-eabi"), Some("usb")),
            Self::Native => ("native", None, None),
        };
        FirmwareCrate { board, target, feature }
    }

    /// The path of the program that emulates it; `None` for a program of the host.
    pub(crate) fn emulator(self) -> Result<Option<PathBuf>, Diagnostic> {
        match self {
            Self::Qemu | Self::QemuUart | Self::QemuSensor => qemu().map(Some),
            Self::Pico | Self::PicoUsb => node().map(Some),
            Self::Native => Ok(None),
        }
    }
}

fn qemu() -> Result<PathBuf, Diagnostic> {
    on_path("qemu-system-arm").ok_or_else(|| {
        let remedy =
            "run `apt-get install qemu-system-arm` (version 7.2 or newer) or `cargo xtask install qemu`";
        Diagnostic::new("qemu-system-arm is not on the PATH, and emulated boards need it", remedy)
    })
}

/// Node, which runs npm's rp2040js.
fn node() -> Result<PathBuf, Diagnostic> {
    let node = on_path("node").ok_or_else(|| {
        let remedy =
            "run `apt-get install nodejs npm` (version 18 or newer), then `cargo xtask install rp2040js`";
        Diagnostic::new("node is not on the PATH, and emulated Picos need it", remedy)
    })?;
    let folder = pico_emulator()?;
    if !folder.join("node_modules/rp2040js/package.json").is_file() {
        let what = format!("npm's rp2040js is not in {}, and emulated Picos need it", folder.display());
        return Err(Diagnostic::new(what, "run `cargo xtask install rp2040js`, or `npm ci` in that folder"));
    }
    Ok(node)
}

/// The folder of the program that emulates Picos.
pub(crate) fn pico_emulator() -> Result<PathBuf, Diagnostic> {
    Ok(boards_folder()?.join("pico/emulator"))
}

/// The path of a program that the user's PATH leads to.
#[must_use]
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Builds the firmware that boards of `kind` run in the default scenario, unless it is up to date, and returns the path of its image.
///
/// # Errors
/// If it does not build.
pub fn image(kind: BoardKind) -> Result<PathBuf, Diagnostic> {
    kind.firmware_crate().build(&FirmwareConfig::USUAL)
}

/// Returns the paths of the emulator and of the program that counts instructions in it; builds the latter unless it is up to date.
///
/// # Errors
/// If the emulator is not installed, or the program does not build.
pub fn counting_program() -> Result<(PathBuf, PathBuf), Diagnostic> {
    let program = FirmwareCrate { feature: Some("instructions"), ..BoardKind::Qemu.firmware_crate() };
    let image = program.build(&FirmwareConfig::USUAL)?;
    Ok((qemu()?, image.with_file_name("instructions")))
}
