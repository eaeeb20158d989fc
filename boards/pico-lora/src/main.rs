//! fabswarm on the Raspberry Pi Pico with an SX1262: frames by LoRa, everything else by USB.
#![no_std]
#![no_main]

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::join::join;
use embassy_rp::{
    bind_interrupts, dma,
    gpio::{Input, Level, Output, Pull},
    peripherals::{DMA_CH0, DMA_CH1},
    spi::{self, Spi},
};
use fabswarm_board_parts::lora::{self, RadioBus, TimedPins};
use fabswarm_chip_rp::{
    flash::{self, FLASH_ADDRESS, QspiFlash},
    health, usb,
};
use lora_phy::{
    iv::GenericSx126xInterfaceVariant,
    sx126x::{self, Sx126x, Sx1262, TcxoCtrlVoltage},
};

bind_interrupts!(struct Interrupts {
    DMA_IRQ_0 => dma::InterruptHandler<DMA_CH0>, dma::InterruptHandler<DMA_CH1>;
});

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
    // The pins are the clock, to the radio, and from the radio.
    let spi = Spi::new(
        pico.SPI1,
        pico.PIN_10,
        pico.PIN_11,
        pico.PIN_12,
        pico.DMA_CH0,
        pico.DMA_CH1,
        Interrupts,
        spi::Config::default(),
    );
    let mut select = Output::new(pico.PIN_3, Level::High);
    let bus = RadioBus { bus: spi, select: move |is_selected: bool| select.set_level((!is_selected).into()) };
    // Waveshare's Pico-LoRa-SX1262, which sits below the Pico: reset, interrupt, busy. It switches its antenna by itself.
    let pins = GenericSx126xInterfaceVariant::new(
        Output::new(pico.PIN_15, Level::High),
        Input::new(pico.PIN_20, Pull::None),
        Input::new(pico.PIN_2, Pull::None),
        None,
        None,
    );
    let pins = TimedPins(pins.expect("the pins are outputs and inputs"));
    let config = sx126x::Config {
        chip: Sx1262,
        tcxo_ctrl: Some(TcxoCtrlVoltage::Ctrl1V7),
        use_dcdc: true,
        rx_boost: false,
    };
    let radio = Sx126x::new(bus, pins, config);
    let parts = board::parts(chip, usb::WINDOW, (), flash, FLASH_ADDRESS, health);
    join(device, lora::run(radio, board::LORA, port, parts)).await.1
}
