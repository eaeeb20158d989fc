//! The chip's watchdog, why the chip started, the light on the board, and how deep the stack has been.

use embassy_rp::{
    Peri,
    gpio::{Level, Output},
    peripherals::{PIN_25, WATCHDOG},
    watchdog::{ResetReason, Watchdog},
};
use embassy_time::Duration;
use fabswarm_board_parts::{panic, stack};
use fabswarm_firmware::{health, packet::ResetCause};

/// The longest that the RP2040's watchdog can wait is 8.3 s.
const PERIOD: Duration = Duration::from_secs(8);

/// The watchdog and the light.
pub struct PicoHealth {
    watchdog: Watchdog,
    light: Output<'static>,
}

impl PicoHealth {
    /// Starts the watchdog, which waits while a debugger has halted the processor.
    pub fn start(watchdog: Peri<'static, WATCHDOG>, light: Peri<'static, PIN_25>) -> Self {
        let mut watchdog = Watchdog::new(watchdog);
        watchdog.pause_on_debug(true);
        watchdog.start(PERIOD);
        Self { watchdog, light: Output::new(light, Level::Low) }
    }
}

/// Restarts the chip. Its RAM stays as it is: the watchdog resets the memory's controllers and not its cells. On the RP2350 embassy-rp
/// 0.10 selects what is reset by the bits of the RP2040, where two others stand for the oscillators: that the message of a panic
/// outlives the reset there is not tested.
pub fn restart() -> ! {
    // SAFETY: called after a panic, when nothing else runs any more.
    Watchdog::new(unsafe { WATCHDOG::steal() }).trigger_reset();
    loop {
        cortex_m::asm::nop();
    }
}

impl health::Health for PicoHealth {
    fn feed_watchdog(&mut self) {
        self.watchdog.feed(PERIOD);
    }

    fn deepest_stack_bytes(&mut self) -> Option<u32> {
        Some(stack::deepest_bytes())
    }

    fn reset_cause(&mut self) -> ResetCause {
        match self.watchdog.reset_reason() {
            Some(ResetReason::Forced) => ResetCause::Software,
            Some(ResetReason::TimedOut) => ResetCause::Watchdog,
            // Power, or the pin RUN.
            None => ResetCause::Power,
        }
    }

    fn last_panic(&mut self) -> Option<&'static str> {
        panic::take()
    }

    fn reset(&mut self) {
        self.watchdog.trigger_reset();
    }

    fn set_light(&mut self, is_on: bool) {
        self.light.set_level(is_on.into());
    }
}
