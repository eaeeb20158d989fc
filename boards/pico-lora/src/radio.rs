//! Waveshare's Pico-LoRa-SX1262, which sits below the Pico.

use embassy_rp::{
    Peri, bind_interrupts, dma,
    gpio::{Input, Level, Output, Pull},
    peripherals::{DMA_CH0, DMA_CH1, PIN_2, PIN_3, PIN_10, PIN_11, PIN_12, PIN_15, PIN_20, SPI1},
    spi::{Async, Config, Spi},
};
use fabswarm_board_parts::lora::{RadioBus, TimedPins};
use lora_phy::{
    iv::GenericSx126xInterfaceVariant,
    mod_traits::RadioKind,
    sx126x::{self, Sx126x, Sx1262, TcxoCtrlVoltage},
};

bind_interrupts!(struct Interrupts {
    DMA_IRQ_0 => dma::InterruptHandler<DMA_CH0>, dma::InterruptHandler<DMA_CH1>;
});

/// How the module is wired.
pub struct RadioPins {
    pub spi: Peri<'static, SPI1>,
    pub clock: Peri<'static, PIN_10>,
    pub to_radio: Peri<'static, PIN_11>,
    pub from_radio: Peri<'static, PIN_12>,
    pub sending: Peri<'static, DMA_CH0>,
    pub receiving: Peri<'static, DMA_CH1>,
    pub select: Peri<'static, PIN_3>,
    pub reset: Peri<'static, PIN_15>,
    pub interrupt: Peri<'static, PIN_20>,
    pub busy: Peri<'static, PIN_2>,
}

impl RadioPins {
    /// The radio behind these pins. It switches its antenna by itself.
    pub fn start(self) -> impl RadioKind {
        let spi: Spi<'static, SPI1, Async> = Spi::new(
            self.spi,
            self.clock,
            self.to_radio,
            self.from_radio,
            self.sending,
            self.receiving,
            Interrupts,
            Config::default(),
        );
        let mut select = Output::new(self.select, Level::High);
        let bus =
            RadioBus { bus: spi, select: move |is_selected: bool| select.set_level((!is_selected).into()) };
        let pins = GenericSx126xInterfaceVariant::new(
            Output::new(self.reset, Level::High),
            Input::new(self.interrupt, Pull::None),
            Input::new(self.busy, Pull::None),
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
}
