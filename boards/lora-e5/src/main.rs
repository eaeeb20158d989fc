//! fabswarm on Seeed's LoRa-E5: frames by LoRa, everything else by USART 1.
#![no_std]
#![no_main]

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_stm32::{
    bind_interrupts,
    flash::FLASH_BASE,
    gpio::Level,
    peripherals,
    usart::{self, BufferedUart},
};
use fabswarm_board_parts::{health::restart, lora};
use fabswarm_chip_stm32wl::{chip, flash::EccFlash, health, radio};

/// Bytes that the UART buffers.
const WINDOW: usize = 256;

bind_interrupts!(struct Interrupts {
    USART1 => usart::BufferedInterruptHandler<peripherals::USART1>;
});

fabswarm_board_parts::board!();
fabswarm_board_parts::keep_faults!(restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let wl = chip::start();
    // Before the radio, which may not answer. The light of the LoRa-E5 mini and the Wio-E5 mini.
    let health = health::start(wl.IWDG, wl.PB5.into(), Level::Low);
    let (mut sending, mut receiving) = ([0; 256], [0; WINDOW]);
    let config = chip::uart_config(board::BAUD);
    let port = BufferedUart::new(wl.USART1, wl.PB7, wl.PB6, &mut sending, &mut receiving, Interrupts, config);
    let radio = radio::start(wl.SUBGHZSPI, wl.DMA1_CH1, wl.DMA1_CH2, wl.PA4.into(), wl.PA5.into());
    let flash = EccFlash::new(wl.FLASH);
    let parts = board::parts(Some(chip::id()), WINDOW as u16, (), flash, FLASH_BASE, health);
    lora::run(radio, board::LORA, port.expect("the baud rate is one of this clock"), parts).await
}
