//! fabswarm's firmware as a Linux process: `native SOCKET FLASH`.

mod flash;
mod log;
mod socket;

use anyhow::{Context, Result, bail};
use embassy_executor::Executor;
use fabswarm_firmware::{Buffers, Parts, health::Health, run, storage::BoardStorage};
use std::path::PathBuf;

/// The operating system watches over processes; nobody need feed it.
struct NoWatchdog;

impl Health for NoWatchdog {
    fn feed_watchdog(&mut self) {}
}

type Board = Parts<'static, socket::Socket, flash::FileFlash, NoWatchdog>;

#[embassy_executor::task]
async fn agent(board: Board) {
    run(board).await
}

fn main() -> Result<()> {
    log::start();
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [socket, flash] = &arguments[..] else {
        bail!("usage: native SOCKET FLASH");
    };
    let flash = flash::FileFlash::open(flash)
        .with_context(|| format!("cannot open the flash {}", flash.display()))?;
    let page = flash.page().context("cannot read the provisioning page")?;
    let board = Parts {
        board: "native",
        chip: None,
        page: bytemuck::cast_slice(page.leak()),
        buffers: Box::leak(Box::new(Buffers::new())),
        link: socket::Socket::connect(socket)
            .with_context(|| format!("cannot connect to the host at {}", socket.display()))?,
        storage: BoardStorage::new(flash),
        health: NoWatchdog,
    };
    let executor = Box::leak(Box::new(Executor::new()));
    executor.run(|spawner| spawner.spawn(agent(board).expect("the first task of an executor has room")));
}
