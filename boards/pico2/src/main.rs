//! fabswarm on the Raspberry Pi Pico 2: everything by USB.
#![no_std]
#![no_main]

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::join::join;
use embassy_rp::otp;
use fabswarm_chip_rp::{
    flash::{FLASH_ADDRESS, QspiFlash},
    health, usb,
};
use fabswarm_firmware::{link::SerialLink, run};

fabswarm_board_parts::board!();
fabswarm_board_parts::keep_faults!(health::restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let pico = embassy_rp::init(Default::default());
    // The number that the maker wrote into the chip.
    let chip = otp::get_chipid().ok();
    let (port, device) = usb::start(pico.USB, board::NAME, chip);
    let flash = QspiFlash::<{ board::STORAGE.end - FLASH_ADDRESS }>::new_blocking(pico.FLASH);
    let health = health::start(pico.WATCHDOG, pico.PIN_25);
    let link = SerialLink::new(port);
    join(device, run(board::parts(chip, usb::WINDOW, link, flash, FLASH_ADDRESS, health))).await.1
}
