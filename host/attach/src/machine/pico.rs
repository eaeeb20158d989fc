//! Emulated boards: the Raspberry Pi Pico in npm's `rp2040js`.

use crate::firmware::{
    Firmware, board_file, board_kind::BoardKind, firmware_crate::FirmwareCrate, flash_file::FlashFile,
    on_path,
};
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

/// Node's arguments for running the board of `agent`.
pub(crate) fn arguments(
    agent: u16,
    firmware: &Firmware,
    socket: &Path,
    flash: &FlashFile,
    log: &Path,
) -> Vec<String> {
    [
        folder().join("main.mjs").display().to_string(),
        format!("--image={}", firmware.image.display()),
        format!("--socket={}", socket.display()),
        format!("--port={}", if firmware.kind == BoardKind::PicoUsb { "usb" } else { "uart" }),
        format!("--flash={}", flash.path().display()),
        format!("--flash-at={}", firmware.layout.address),
        format!("--log={}", log.display()),
        format!("--chip={:x}", 1 + u64::from(agent)),
    ]
    .to_vec()
}
