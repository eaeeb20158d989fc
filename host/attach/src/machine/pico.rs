//! Emulated boards: the Raspberry Pi Pico in npm's `rp2040js`.

use crate::firmware::{board_file, firmware_crate::FirmwareCrate, on_path};
use fabswarm_diagnostic::Diagnostic;
use std::path::{Path, PathBuf};

/// Everything by UART.
pub(crate) const FIRMWARE: FirmwareCrate<'static> =
    FirmwareCrate { board: "pico", target: Some("thumbv6m-none-eabi"), feature: None };

/// Everything by USB.
pub(crate) const USB_FIRMWARE: FirmwareCrate<'static> = FirmwareCrate { feature: Some("usb"), ..FIRMWARE };

/// The path of Node, once the emulator's package is known to be there.
pub(crate) fn emulator() -> Result<PathBuf, Diagnostic> {
    let node = on_path("node").ok_or_else(|| {
        Diagnostic::new(
            "node is not on the PATH, and emulated Picos need it",
            "run `apt-get install nodejs npm` (version 18 or newer), then `cargo xtask install rp2040js`",
        )
    })?;
    let folder = folder();
    if !folder.join("node_modules/rp2040js/package.json").is_file() {
        return Err(Diagnostic::new(
            format!("npm's rp2040js is not in {}, and emulated Picos need it", folder.display()),
            "run `cargo xtask install rp2040js`, or `npm ci` in that folder",
        ));
    }
    Ok(node)
}

/// The folder of the emulator's script.
fn folder() -> PathBuf {
    board_file::folder("pico").join("emulator")
}

/// What an emulated Pico is made of.
pub(crate) struct EmulatedPico<'a> {
    pub(crate) image: &'a Path,
    pub(crate) socket: &'a Path,
    /// `uart` or `usb`.
    pub(crate) port: &'a str,
    /// The file that keeps the flash from `flash_address` on.
    pub(crate) flash: &'a Path,
    pub(crate) flash_address: u64,
    pub(crate) log: &'a Path,
    /// The number of its chip.
    pub(crate) chip: u64,
}

impl EmulatedPico<'_> {
    /// Node's arguments for running it.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        [
            path(&folder().join("main.mjs")),
            format!("--image={}", path(self.image)),
            format!("--socket={}", path(self.socket)),
            format!("--port={}", self.port),
            format!("--flash={}", path(self.flash)),
            format!("--flash-at={}", self.flash_address),
            format!("--log={}", path(self.log)),
            format!("--chip={:x}", self.chip),
        ]
        .to_vec()
    }
}
