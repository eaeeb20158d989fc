//! fabswarm on Seeed's LoRa-E5: frames by LoRa, everything else by USART 1. Its drivers are those of the Nucleo-WL55JC.
#![no_std]
#![no_main]

#[path = "../../nucleo-wl55/src/agent.rs"]
mod agent;
/// Constants that the build script took from `board.toml`.
mod board {
    include!(concat!(env!("OUT_DIR"), "/board.rs"));
}
#[path = "../../nucleo-wl55/src/chip.rs"]
mod chip;
#[path = "../../nucleo-wl55/src/ecc_flash.rs"]
mod ecc_flash;
#[path = "../../nucleo-wl55/src/health.rs"]
mod health;
#[path = "../../lora.rs"]
mod lora;
#[path = "../../nucleo-wl55/src/radio.rs"]
mod radio;

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_stm32::{
    bind_interrupts, dma,
    gpio::Level,
    peripherals,
    usart::{self, BufferedUart},
};

bind_interrupts!(struct Interrupts {
    DMA1_CHANNEL1 => dma::InterruptHandler<peripherals::DMA1_CH1>;
    DMA1_CHANNEL2 => dma::InterruptHandler<peripherals::DMA1_CH2>;
    SUBGHZ_RADIO => radio::InterruptHandler;
    USART1 => usart::BufferedInterruptHandler<peripherals::USART1>;
});

fabswarm_board_parts::keep_faults!(health::restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let chip = chip::start();
    // Before the radio, which may not answer. The light of the LoRa-E5 mini and the Wio-E5 mini.
    let health = health::WlHealth::start(chip.IWDG, chip.PB5.into(), Level::Low);
    let (mut sending, mut receiving) = ([0; 256], [0; agent::WINDOW]);
    let port = BufferedUart::new(
        chip.USART1,
        chip.PB7,
        chip.PB6,
        &mut sending,
        &mut receiving,
        Interrupts,
        agent::uart_config(),
    );
    let bus = radio::bus(chip.SUBGHZSPI, chip.DMA1_CH1, chip.DMA1_CH2, Interrupts);
    let radio = radio::start(bus, chip.PA4.into(), chip.PA5.into());
    agent::run(health, port, radio, chip.FLASH).await
}
