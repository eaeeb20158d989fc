//! How the chip is set up, and its number.

use embassy_stm32::{Config, Peripherals, rcc, time::Hertz, usart};

/// Where the maker wrote the number of the chip, as radios have one.
const NUMBER_AT: *const u64 = 0x1FFF_7580 as *const u64;

/// Starts the radio's crystal, which the clock that rounds are counted by runs on too.
pub fn start() -> Peripherals {
    let mut config = Config::default();
    let mode = rcc::HseMode::Bypass;
    config.rcc.hse = Some(rcc::Hse { freq: Hertz(32_000_000), mode, prescaler: rcc::HsePrescaler::DIV1 });
    // 48 MHz.
    config.rcc.sys = rcc::Sysclk::PLL1_R;
    config.rcc.pll = Some(rcc::Pll {
        source: rcc::PllSource::HSE,
        prediv: rcc::PllPreDiv::DIV2,
        mul: rcc::PllMul::MUL6,
        divp: None,
        divq: Some(rcc::PllQDiv::DIV2),
        divr: Some(rcc::PllRDiv::DIV2),
    });
    embassy_stm32::init(config)
}

pub fn uart_config(baud: u32) -> usart::Config {
    let mut config = usart::Config::default();
    config.baudrate = baud;
    config
}

/// The number that the maker gave this chip.
pub fn id() -> u64 {
    // SAFETY: it is there on every STM32WL, aligned, and never changes.
    unsafe { NUMBER_AT.read() }
}
