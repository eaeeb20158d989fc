//! fabswarm on ST's Nucleo-WL55JC: frames by LoRa, everything else by the UART of the debugger's USB port.
#![no_std]
#![no_main]

mod agent;
/// Constants that the build script took from `board.toml`.
mod board {
    include!(concat!(env!("OUT_DIR"), "/board.rs"));
}
mod chip;
mod ecc_flash;
mod health;
#[path = "../../lora.rs"]
mod lora;
mod radio;

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_stm32::{
    bind_interrupts, dma,
    gpio::{Level, Output, Speed},
    peripherals,
    usart::{self, BufferedUart},
};

bind_interrupts!(struct Interrupts {
    DMA1_CHANNEL1 => dma::InterruptHandler<peripherals::DMA1_CH1>;
    DMA1_CHANNEL2 => dma::InterruptHandler<peripherals::DMA1_CH2>;
    SUBGHZ_RADIO => radio::InterruptHandler;
    USART2 => usart::BufferedInterruptHandler<peripherals::USART2>;
});

fabswarm_board_parts::keep_faults!(health::restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let chip = chip::start();
    // Before the radio, which may not answer. The blue light.
    let health = health::WlHealth::start(chip.IWDG, chip.PB15.into(), Level::High);
    // FE_CTRL3 powers the antenna switch, which has no path to the antenna without it.
    let _switch_power = Output::new(chip.PC3, Level::High, Speed::Low);
    let (mut sending, mut receiving) = ([0; 256], [0; agent::WINDOW]);
    let port = BufferedUart::new(
        chip.USART2,
        chip.PA3,
        chip.PA2,
        &mut sending,
        &mut receiving,
        Interrupts,
        agent::uart_config(),
    );
    let bus = radio::bus(chip.SUBGHZSPI, chip.DMA1_CH1, chip.DMA1_CH2, Interrupts);
    // FE_CTRL1 and FE_CTRL2.
    let radio = radio::start(bus, chip.PC4.into(), chip.PC5.into());
    agent::run(health, port, radio, chip.FLASH).await
}
