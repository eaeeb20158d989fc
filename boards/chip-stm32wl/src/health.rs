//! The chip's watchdog, why the chip started, and a light on the board.

use embassy_stm32::{
    Peri,
    gpio::{AnyPin, Level, Output, Speed},
    pac, peripherals,
    wdg::IndependentWatchdog,
};
use fabswarm_board_parts::health::{CortexHealth, restart};
use fabswarm_firmware::{health::Health, packet::ResetCause};

const PERIOD_US: u32 = 8_000_000;

/// Starts the watchdog, which waits while a debugger has halted the processor. The light shines while its pin has the level `shining`.
pub fn start(
    watchdog: Peri<'static, peripherals::IWDG>,
    light: Peri<'static, AnyPin>,
    shining: Level,
) -> impl Health {
    pac::DBGMCU.apb1fzr1().modify(|freeze| freeze.set_iwdg(true));
    let mut watchdog = IndependentWatchdog::new(watchdog, PERIOD_US);
    watchdog.unleash();
    let level = move |is_on: bool| Level::from(is_on == (shining == Level::High));
    let mut light = Output::new(light, level(false), Speed::Low);
    CortexHealth {
        feed_watchdog: move || watchdog.pet(),
        set_light: move |is_on: bool| light.set_level(level(is_on)),
        reset_cause: reset_cause(),
        restart,
    }
}

fn reset_cause() -> ResetCause {
    let reason = pac::RCC.csr().read();
    // Its bits add up until they are cleared.
    pac::RCC.csr().modify(|reason| reason.set_rmvf(true));
    match reason {
        reason if reason.iwdgrstf() => ResetCause::Watchdog,
        reason if reason.sftrstf() => ResetCause::Software,
        reason if reason.borrstf() => ResetCause::Power,
        reason if reason.pinrstf() => ResetCause::Pin,
        _ => ResetCause::Unknown,
    }
}
