//! fabswarm on ST's STM32WLE5: frames by LoRa, everything else by USART 2.
#![no_std]
#![no_main]

/// What the build script took from `board.toml`.
mod board {
    include!(concat!(env!("OUT_DIR"), "/board.rs"));
}
mod chip;
#[path = "../../flash.rs"]
mod flash;
mod health;
#[path = "../../lora.rs"]
mod lora;
#[path = "../../panic.rs"]
mod panic;
mod radio;
#[path = "../../stack.rs"]
mod stack;

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::join::join;
use embassy_stm32::{
    bind_interrupts, dma,
    flash::{FLASH_BASE, Flash},
    peripherals,
    usart::{self, BufferedUart},
};
use fabswarm_firmware::{
    Buffers, LINE, PACKET, Parts,
    link::{FragmentedLink, RadioQueue, SerialLink, SplitLink, keep_listening},
    run,
    storage::BoardStorage,
};
use static_cell::ConstStaticCell;

/// Bytes that the UART buffers.
const WINDOW: usize = 256;

static BUFFERS: ConstStaticCell<Buffers> = ConstStaticCell::new(Buffers::new());

bind_interrupts!(struct Interrupts {
    DMA1_CHANNEL1 => dma::InterruptHandler<peripherals::DMA1_CH1>;
    DMA1_CHANNEL2 => dma::InterruptHandler<peripherals::DMA1_CH2>;
    SUBGHZ_RADIO => radio::InterruptHandler;
    USART2 => usart::BufferedInterruptHandler<peripherals::USART2>;
});

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let chip = chip::start();
    // Before the radio, which may not answer.
    let health = health::ChipHealth::start(chip.IWDG, chip.PB5.into());
    let (mut sending, mut receiving) = ([0; 256], [0; WINDOW]);
    let mut config = usart::Config::default();
    config.baudrate = board::BAUD;
    let port =
        BufferedUart::new(chip.USART2, chip.PA3, chip.PA2, &mut sending, &mut receiving, Interrupts, config);
    let port = port.expect("the baud rate is one of this clock");
    let bus = radio::bus(chip.SUBGHZSPI, chip.DMA1_CH1, chip.DMA1_CH2, Interrupts);
    let radio = lora::LoraLink::start(radio::start(bus, chip.PC4.into(), chip.PC5.into())).await;
    // Without its radio the board is of no use: it says so and starts again.
    let (mut radio, radio_queue) = (radio.expect("the radio does not start"), RadioQueue::new());
    let agent = run(Parts {
        board: board::NAME,
        chip: Some(chip::id()),
        window: WINDOW as u16,
        page: flash::page(),
        buffers: BUFFERS.take(),
        link: SplitLink::<_, _, PACKET>::new(
            FragmentedLink::<_, { lora::MTU }, PACKET, { lora::SLOTS }>::new(lora::BoardEnd::new(
                &radio_queue,
            )),
            SerialLink::<_, LINE>::new(port),
        ),
        storage: BoardStorage::new(flash::BoardFlash::<_, FLASH_BASE>(Flash::new_blocking(chip.FLASH))),
        health,
    });
    join(keep_listening(&mut radio, &radio_queue), agent).await.1
}
