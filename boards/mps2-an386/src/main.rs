//! fabswarm on the emulated board: ARM's MPS2 with a Cortex-M4F (application note AN386), as QEMU models it.
#![no_std]
#![no_main]

/// Constants that the build script took from `board.toml`.
mod board {
    include!(concat!(env!("OUT_DIR"), "/board.rs"));
}
mod clock;
mod cmsdk_uart;
#[cfg(not(feature = "uart"))]
mod ethernet;
mod executor;
mod flash;
mod health;
mod interrupts;
mod log;
mod panic;
mod registers;
#[cfg(feature = "sensor")]
mod sensor;
#[cfg(feature = "uart")]
mod uart;

use embassy_executor::Spawner;
use fabswarm_firmware::{Parts, storage::BoardStorage};

#[embassy_executor::main(executor = "executor::Executor", entry = "cortex_m_rt::entry")]
async fn main(_spawner: Spawner) {
    log::start();
    clock::start();
    let parts = Parts {
        board: board::NAME,
        chip: None,
        #[cfg(not(feature = "uart"))]
        window: ethernet::WINDOW,
        #[cfg(feature = "uart")]
        window: uart::WINDOW,
        page: board::page(),
        buffers: fabswarm_board_parts::buffers(),
        #[cfg(not(feature = "uart"))]
        link: ethernet::Ethernet::start(),
        #[cfg(feature = "uart")]
        link: fabswarm_firmware::link::SerialLink::new(uart::Uart::start()),
        storage: BoardStorage::new(flash::PsramFlash),
        health: health::CmsdkWatchdog::start(),
        marks: None,
    };
    #[cfg(not(feature = "sensor"))]
    fabswarm_firmware::run(parts).await;
    #[cfg(feature = "sensor")]
    fabswarm_firmware::run_sensed(parts, sensor::UartSensor::start(), sensor::Autopilot::start()).await
}
