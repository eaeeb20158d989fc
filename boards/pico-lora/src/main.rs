//! fabswarm on the Raspberry Pi Pico with an SX1262: frames by LoRa, everything else by USB.
#![no_std]
#![no_main]

mod radio;

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::join::join;
use fabswarm_board_parts::lora;
use fabswarm_chip_rp::{
    flash::{self, FLASH_ADDRESS, QspiFlash},
    health, usb,
};

fabswarm_board_parts::board!();
fabswarm_board_parts::keep_faults!(health::restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let pico = embassy_rp::init(Default::default());
    // Before the radio, which may not answer.
    let health = health::start(pico.WATCHDOG, pico.PIN_25);
    let mut flash = QspiFlash::<{ board::STORAGE.end - FLASH_ADDRESS }>::new_blocking(pico.FLASH);
    let chip = flash::number(&mut flash);
    let (port, device) = usb::start(pico.USB, board::NAME, chip);
    let radio = radio::RadioPins {
        spi: pico.SPI1,
        clock: pico.PIN_10,
        to_radio: pico.PIN_11,
        from_radio: pico.PIN_12,
        sending: pico.DMA_CH0,
        receiving: pico.DMA_CH1,
        select: pico.PIN_3,
        reset: pico.PIN_15,
        interrupt: pico.PIN_20,
        busy: pico.PIN_2,
    };
    let parts = board::parts(chip, usb::WINDOW, (), flash, FLASH_ADDRESS, health);
    join(device, lora::run(radio.start(), board::LORA, port, parts)).await.1
}
