//! The chip's watchdog, why the chip started, and a light on the board.

use embassy_nrf::{
    Peri,
    gpio::{AnyPin, Level, Output, OutputDrive},
    pac, peripherals,
    wdt::{Config, HaltConfig, Watchdog},
};
use fabswarm_board_parts::health::{CortexHealth, restart};
use fabswarm_firmware::{health::Health, packet::ResetCause};

const TICKS_PER_SECOND: u32 = 32_768;
const PERIOD_S: u32 = 8;

/// Starts the watchdog, unless a debugger has started it otherwise. The light shines while its pin is low.
pub fn start(watchdog: Peri<'static, peripherals::WDT>, light: Peri<'static, AnyPin>) -> impl Health {
    let mut config = Config::default();
    config.timeout_ticks = PERIOD_S * TICKS_PER_SECOND;
    // A breakpoint is no hang.
    config.action_during_debug_halt = HaltConfig::Pause;
    let mut watchdog = Watchdog::try_new(watchdog, config).ok().map(|(_, [handle])| handle);
    let mut light = Output::new(light, Level::High, OutputDrive::Standard);
    CortexHealth {
        feed_watchdog: move || watchdog.iter_mut().for_each(|handle| handle.pet()),
        set_light: move |is_on: bool| light.set_level((!is_on).into()),
        reset_cause: reset_cause(),
        restart,
    }
}

fn reset_cause() -> ResetCause {
    let reason = pac::POWER.resetreas().read();
    // Its bits add up until they are cleared by writing ones.
    pac::POWER.resetreas().write_value(reason);
    match reason {
        reason if reason.dog() => ResetCause::Watchdog,
        reason if reason.lockup() => ResetCause::LockUp,
        reason if reason.sreq() => ResetCause::Software,
        reason if reason.resetpin() => ResetCause::Pin,
        _ => ResetCause::Power,
    }
}
