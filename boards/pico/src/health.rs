//! The chip's watchdog, the light on the board, and how deep the stack has been.

use crate::stack;
use embassy_rp::{
    Peri,
    gpio::{Level, Output},
    peripherals::{PIN_25, WATCHDOG},
    watchdog::Watchdog,
};
use embassy_time::Duration;
use fabswarm_firmware::health;

/// The longest that the RP2040's watchdog can wait is 8.3 s.
const PERIOD: Duration = Duration::from_secs(8);

/// What watches over the firmware.
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

impl health::Health for PicoHealth {
    fn feed_watchdog(&mut self) {
        self.watchdog.feed(PERIOD);
    }

    fn deepest_stack_bytes(&mut self) -> Option<u32> {
        Some(stack::deepest_bytes())
    }

    fn reset(&mut self) {
        self.watchdog.trigger_reset();
    }

    fn set_light(&mut self, is_on: bool) {
        self.light.set_level(is_on.into());
    }
}
