//! Emulated boards: QEMU's `mps2-an386`, a Cortex-M4F.

use super::{Error, image::Image};
use std::{
    env,
    path::{Path, PathBuf},
};

pub(super) const IMAGE: Image = Image { board: "mps2-an386", target: Some("thumbv7em-none-eabihf") };

const PROGRAM: &str = "qemu-system-arm";

/// Where QEMU is.
pub(super) fn program() -> Result<PathBuf, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join(PROGRAM))
        .find(|file| file.is_file())
        .ok_or(Error::NoQemu)
}

/// What QEMU must be told to run `image` with this socket as its Ethernet, this flash, and its log in this file.
pub(super) fn arguments(image: &Path, socket: &Path, flash: &Path, log: &Path) -> Vec<String> {
    [
        // The machine's PSRAM is a file, so that what the board stores outlives it.
        ["-M", "mps2-an386,memory-backend=flash"].map(str::to_owned),
        [
            "-object".into(),
            format!("memory-backend-file,id=flash,size=16M,share=on,mem-path={}", flash.display()),
        ],
        ["-netdev".into(), format!("stream,id=air,addr.type=unix,addr.path={}", socket.display())],
        ["-net", "nic,netdev=air,model=lan9118"].map(str::to_owned),
        ["-serial", "null"].map(str::to_owned),
        ["-serial".into(), format!("file:{}", log.display())],
        // Only so that firmware that cannot go on ends its machine.
        ["-semihosting-config", "enable=on,target=native"].map(str::to_owned),
        ["-display", "none"].map(str::to_owned),
        ["-monitor", "none"].map(str::to_owned),
        ["-kernel".into(), image.display().to_string()],
    ]
    .concat()
}
