//! The chip's watchdog, why the chip started, and the light on the board.

use embassy_rp::{
    Peri,
    gpio::{Level, Output},
    peripherals::{PIN_25, WATCHDOG},
    watchdog::{ResetReason, Watchdog},
};
use embassy_time::Duration;
use fabswarm_board_parts::health::CortexHealth;
use fabswarm_firmware::{health::Health, packet::ResetCause};

/// The longest that the RP2040's watchdog can wait is 8.3 s.
const PERIOD: Duration = Duration::from_secs(8);

/// Starts the watchdog, which waits while a debugger has halted the processor.
pub fn start(watchdog: Peri<'static, WATCHDOG>, light: Peri<'static, PIN_25>) -> impl Health {
    let mut watchdog = Watchdog::new(watchdog);
    let reset_cause = match watchdog.reset_reason() {
        Some(ResetReason::Forced) => ResetCause::Software,
        Some(ResetReason::TimedOut) => ResetCause::Watchdog,
        // Power, or the pin RUN.
        None => ResetCause::Power,
    };
    watchdog.pause_on_debug(true);
    watchdog.start(PERIOD);
    let mut light = Output::new(light, Level::Low);
    CortexHealth {
        feed_watchdog: move || watchdog.feed(PERIOD),
        set_light: move |is_on: bool| light.set_level(is_on.into()),
        reset_cause,
        restart,
    }
}

/// Restarts the chip. Its RAM stays as it is: the watchdog resets the memory's controllers and not its cells. On the RP2350 embassy-rp
/// 0.10 selects what is reset by the bits of the RP2040, where two others stand for the oscillators: that the message of a panic
/// outlives the reset there is not tested.
pub fn restart() -> ! {
    // SAFETY: called after a panic, or when the board is to start again, whatever else uses the watchdog.
    Watchdog::new(unsafe { WATCHDOG::steal() }).trigger_reset();
    loop {
        cortex_m::asm::nop();
    }
}
