//! Emulated boards: QEMU's `mps2-an386`, a Cortex-M4F.

use super::{Error, firmware_crate::FirmwareCrate, on_path, packet_stream::PacketFraming};
use std::path::{Path, PathBuf};

pub(super) const FIRMWARE: FirmwareCrate =
    FirmwareCrate { board: "mps2-an386", target: Some("thumbv7em-none-eabihf"), feature: None };

/// The same board, its packets on a serial line.
pub(super) const UART_FIRMWARE: FirmwareCrate = FirmwareCrate { feature: Some("uart"), ..FIRMWARE };

/// The same firmware together with the program that counts instructions.
pub(super) const COUNTING_FIRMWARE: FirmwareCrate =
    FirmwareCrate { feature: Some("instructions"), ..FIRMWARE };

/// The path of QEMU.
pub(super) fn emulator() -> Result<PathBuf, Error> {
    on_path("qemu-system-arm").ok_or(Error::NoQemu)
}

/// Escapes a path for use in a QEMU option, where a comma ends the value.
fn in_option(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// QEMU's arguments for running `image` with `socket` as its Ethernet or serial port, `flash` as its flash and `log` as the file for
/// its log.
pub(super) fn arguments(
    image: &Path,
    (framing, socket): (PacketFraming, &Path),
    flash: &Path,
    log: &Path,
) -> Vec<String> {
    let socket = in_option(socket);
    let link = match framing {
        PacketFraming::Ethernet => [
            ["-netdev".into(), format!("stream,id=air,addr.type=unix,addr.path={socket}")],
            ["-net", "nic,netdev=air,model=lan9118"].map(str::to_owned),
            ["-serial", "null"].map(str::to_owned),
        ],
        PacketFraming::Serial => [
            ["-chardev".into(), format!("socket,id=air,path={socket}")],
            ["-net", "none"].map(str::to_owned),
            ["-serial", "chardev:air"].map(str::to_owned),
        ],
    };
    let machine = [
        // The machine's PSRAM is a file, so that what the board stores survives a restart.
        ["-M", "mps2-an386,memory-backend=flash"].map(str::to_owned),
        // One emulated core needs one thread and a small translation buffer: 10 % faster with a hundred emulators.
        ["-accel", "tcg,thread=single,tb-size=4"].map(str::to_owned),
        [
            "-object".into(),
            format!("memory-backend-file,id=flash,size=16M,share=on,mem-path={}", in_option(flash)),
        ],
    ];
    let rest = [
        ["-serial".into(), format!("file:{}", log.display())],
        // Lets firmware exit the emulator after a panic.
        ["-semihosting-config", "enable=on,target=native"].map(str::to_owned),
        ["-display", "none"].map(str::to_owned),
        ["-monitor", "none"].map(str::to_owned),
        ["-kernel".into(), image.display().to_string()],
    ];
    [&machine[..], &link, &rest].concat().concat()
}
