//! Waveshare's Pico-LoRa-SX1262, which sits below the Pico.

use embassy_rp::{
    Peri,
    gpio::{Input, Level, Output, Pull},
    peripherals::{PIN_2, PIN_3, PIN_15, PIN_20, SPI1},
    spi::{Async, Spi},
};
use fabswarm_board_parts::lora::{RadioBus, TimedPins};
use lora_phy::{
    iv::GenericSx126xInterfaceVariant,
    mod_traits::RadioKind,
    sx126x::{self, Sx126x, Sx1262, TcxoCtrlVoltage},
};

/// The radio behind this bus and these pins. It switches its antenna by itself.
pub fn start(
    bus: Spi<'static, SPI1, Async>,
    select: Peri<'static, PIN_3>,
    reset: Peri<'static, PIN_15>,
    interrupt: Peri<'static, PIN_20>,
    busy: Peri<'static, PIN_2>,
) -> impl RadioKind {
    let mut select = Output::new(select, Level::High);
    let bus = RadioBus { bus, select: move |is_selected: bool| select.set_level((!is_selected).into()) };
    let pins = GenericSx126xInterfaceVariant::new(
        Output::new(reset, Level::High),
        Input::new(interrupt, Pull::None),
        Input::new(busy, Pull::None),
        None,
        None,
    );
    let config = sx126x::Config {
        chip: Sx1262,
        tcxo_ctrl: Some(TcxoCtrlVoltage::Ctrl1V7),
        use_dcdc: true,
        rx_boost: false,
    };
    Sx126x::new(bus, TimedPins(pins.expect("the pins are outputs and inputs")), config)
}
