//! Emulated boards: QEMU's `mps2-an386`, a Cortex-M4F.

use super::{Error, cable::Framing, image::Image};
use std::{
    env,
    path::{Path, PathBuf},
};

pub(super) const IMAGE: Image =
    Image { board: "mps2-an386", target: Some("thumbv7em-none-eabihf"), feature: None };

/// The same board, its packets on a serial line.
pub(super) const UART_IMAGE: Image = Image { feature: Some("uart"), ..IMAGE };

/// With the program that counts instructions beside the firmware.
pub(super) const COUNTING_IMAGE: Image = Image { feature: Some("instructions"), ..IMAGE };

const PROGRAM: &str = "qemu-system-arm";

/// Where QEMU is.
pub(super) fn program() -> Result<PathBuf, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join(PROGRAM))
        .find(|file| file.is_file())
        .ok_or(Error::NoQemu)
}

/// A path as the value of one of QEMU's options, where a comma would end it.
fn in_option(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// What QEMU must be told to run `image` with this socket at its Ethernet or its serial port, this flash, and its log in
/// this file.
pub(super) fn arguments(
    image: &Path,
    (framing, socket): (Framing, &Path),
    flash: &Path,
    log: &Path,
) -> Vec<String> {
    let socket = in_option(socket);
    let link = match framing {
        Framing::Ethernet => [
            ["-netdev".into(), format!("stream,id=air,addr.type=unix,addr.path={socket}")],
            ["-net", "nic,netdev=air,model=lan9118"].map(str::to_owned),
            ["-serial", "null"].map(str::to_owned),
        ],
        Framing::Serial => [
            ["-chardev".into(), format!("socket,id=air,path={socket}")],
            ["-net", "none"].map(str::to_owned),
            ["-serial", "chardev:air"].map(str::to_owned),
        ],
    };
    let machine = [
        // The machine's PSRAM is a file, so that what the board stores outlives it.
        ["-M", "mps2-an386,memory-backend=flash"].map(str::to_owned),
        // One core needs one thread, and little room for its translated code: in a hundred emulators that is a tenth of the time.
        ["-accel", "tcg,thread=single,tb-size=4"].map(str::to_owned),
        [
            "-object".into(),
            format!("memory-backend-file,id=flash,size=16M,share=on,mem-path={}", in_option(flash)),
        ],
    ];
    let rest = [
        ["-serial".into(), format!("file:{}", log.display())],
        // Only so that firmware that cannot go on ends its machine.
        ["-semihosting-config", "enable=on,target=native"].map(str::to_owned),
        ["-display", "none"].map(str::to_owned),
        ["-monitor", "none"].map(str::to_owned),
        ["-kernel".into(), image.display().to_string()],
    ];
    [&machine[..], &link, &rest].concat().concat()
}
