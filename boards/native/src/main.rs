//! fabswarm's firmware as a Linux process: `native SOCKET FLASH [CHIP]`. With a chip's number, in hexadecimal digits, the socket
//! carries the bytes of a serial line instead of packets.

mod flash;
mod log;
mod socket;

use anyhow::{Context, Result, bail};
use embassy_executor::Executor;
use fabswarm_board_parts::{buffers, flash::BoardFlash};
use fabswarm_firmware::{Parts, health::Health, run, storage::BoardStorage};
use std::{env, os::unix::process::CommandExt, path::PathBuf, process::Command};

/// The kernel buffers what arrives, and a sender of more has to wait.
const WINDOW: u16 = 8192;

/// The operating system watches processes: there is no watchdog to feed.
struct ProcessHealth;

impl Health for ProcessHealth {
    fn feed_watchdog(&mut self) {}

    fn reset(&mut self) {
        let program = env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
        // Returns only if it fails.
        let error = Command::new(program).args(env::args_os().skip(1)).exec();
        ::log::error!("cannot restart: {error}");
    }
}

type Board = Parts<'static, socket::NativeLink, BoardFlash<flash::FileFlash>, ProcessHealth>;

#[embassy_executor::task]
async fn agent(board: Board) {
    run(board).await
}

fn main() -> Result<()> {
    log::start();
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let (socket, flash, chip) = match &arguments[..] {
        [socket, flash] => (socket, flash, None),
        [socket, flash, chip] => {
            let chip = u64::from_str_radix(&chip.to_string_lossy(), 16);
            (socket, flash, Some(chip.context("the number of the chip must be hexadecimal")?))
        }
        _ => bail!("usage: native SOCKET FLASH [CHIP]"),
    };
    let flash = flash::FileFlash::open(flash)
        .with_context(|| format!("cannot open the flash {}", flash.display()))?;
    let page = flash.page().context("cannot read the provisioning record")?;
    let board = Parts {
        board: "native",
        chip,
        window: WINDOW,
        page: bytemuck::cast_slice(page.leak()),
        buffers: buffers(),
        link: socket::NativeLink::connect(socket, chip.is_some())
            .with_context(|| format!("cannot connect to the host at {}", socket.display()))?,
        storage: BoardStorage::new(flash.into_board_flash()),
        health: ProcessHealth,
        marks: None,
    };
    let executor = Box::leak(Box::new(Executor::new()));
    executor.run(|spawner| spawner.spawn(agent(board).expect("the first task of an executor has room")));
}
