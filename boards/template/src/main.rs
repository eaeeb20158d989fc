//! A board to copy: fabswarm on an nRF52840, everything by UART. What is numbered is what another board does otherwise; see
//! `docs/boards.md`.
#![no_std]
#![no_main]

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_nrf::{
    bind_interrupts,
    buffered_uarte::{self, BufferedUarte},
    nvmc::Nvmc,
    peripherals,
};
use fabswarm_board_parts::health::restart;
// 1. The chip: clocks and its number; watchdog, cause of the reset and light. Another chip has modules of its own with the same functions.
use fabswarm_chip_nrf52840::{chip, health};
use fabswarm_firmware::{link::SerialLink, run};

/// 2. Bytes that the receiver buffers while the firmware is busy.
const WINDOW: usize = 256;

bind_interrupts!(struct Interrupts {
    UARTE0 => buffered_uarte::InterruptHandler<peripherals::UARTE0>;
});

// Constants that the build script took from `board.toml`.
fabswarm_board_parts::board!();
// 6. How the chip restarts.
fabswarm_board_parts::keep_faults!(restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let nrf = chip::start();
    let (mut receiving, mut sending) = ([0; WINDOW], [0; 256]);
    // 3. The port or radio: anything with `embedded_io_async::{Read, Write}` makes a `SerialLink`.
    let port = BufferedUarte::new(
        nrf.UARTE0,
        nrf.TIMER1,
        nrf.PPI_CH0,
        nrf.PPI_CH1,
        nrf.PPI_GROUP0,
        nrf.P0_08,
        nrf.P0_06,
        Interrupts,
        Default::default(),
        &mut receiving,
        &mut sending,
    );
    let link = SerialLink::new(port);
    // 4. The pin of a light that shows which board it is.
    let health = health::start(nrf.WDT, nrf.P0_13.into());
    // 5. The driver of the flash, and the address that it counts from.
    let flash = Nvmc::new(nrf.NVMC);
    run(board::parts(Some(chip::id()), WINDOW as u16, link, flash, 0, health)).await
}
