//! Emulated boards: the Raspberry Pi Pico in npm's `rp2040js`.

use crate::firmware::board_kind::{BoardKind, pico_emulator};
use crate::firmware::{Firmware, flash_file::FlashFile};
use fabswarm_diagnostic::Diagnostic;
use std::path::Path;

pub(crate) fn arguments(
    agent: u16,
    firmware: &Firmware,
    socket: &Path,
    flash: &FlashFile,
    log: &Path,
) -> Result<Vec<String>, Diagnostic> {
    Ok([
        pico_emulator()?.join("main.mjs").display().to_string(),
        format!("--image={}", firmware.image.display()),
        format!("--socket={}", socket.display()),
        format!("--port={}", if firmware.kind == BoardKind::PicoUsb { "usb" } else { "uart" }),
        format!("--flash={}", flash.path.display()),
        format!("--flash-at={}", firmware.layout.address),
        format!("--log={}", log.display()),
        format!("--chip={:x}", 1 + u64::from(agent)),
    ]
    .to_vec())
}
