//! fabswarm on ST's Nucleo-WL55JC: frames by LoRa, everything else by the UART of the debugger's USB port.
#![no_std]
#![no_main]

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_stm32::{
    bind_interrupts,
    flash::FLASH_BASE,
    gpio::{Level, Output, Speed},
    peripherals,
    usart::{self, BufferedUart},
};
use fabswarm_board_parts::{health::restart, lora};
use fabswarm_chip_stm32wl::{chip, flash::EccFlash, health, radio};

/// Bytes that the UART buffers.
const WINDOW: usize = 256;

bind_interrupts!(struct Interrupts {
    USART2 => usart::BufferedInterruptHandler<peripherals::USART2>;
});

fabswarm_board_parts::board!();
fabswarm_board_parts::keep_faults!(restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let wl = chip::start();
    // Before the radio, which may not answer. The blue light.
    let health = health::start(wl.IWDG, wl.PB15.into(), Level::High);
    // FE_CTRL3 powers the antenna switch, which has no path to the antenna without it.
    let _switch_power = Output::new(wl.PC3, Level::High, Speed::Low);
    let (mut sending, mut receiving) = ([0; 256], [0; WINDOW]);
    let config = chip::uart_config(board::BAUD);
    let port = BufferedUart::new(wl.USART2, wl.PA3, wl.PA2, &mut sending, &mut receiving, Interrupts, config);
    // FE_CTRL1 and FE_CTRL2.
    let radio = radio::start(wl.SUBGHZSPI, wl.DMA1_CH1, wl.DMA1_CH2, wl.PC4.into(), wl.PC5.into());
    let flash = EccFlash::new(wl.FLASH);
    let parts = board::parts(Some(chip::id()), WINDOW as u16, (), flash, FLASH_BASE, health);
    lora::run(radio, board::LORA, port.expect("the baud rate is one of this clock"), parts).await
}
