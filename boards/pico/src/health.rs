//! The chip's watchdog, and how deep the stack has been.

use crate::stack;
use embassy_rp::{Peri, peripherals::WATCHDOG, watchdog::Watchdog};
use embassy_time::Duration;
use fabswarm_firmware::health;

/// The longest that the RP2040's watchdog can wait is 8.3 s.
const PERIOD: Duration = Duration::from_secs(8);

/// What watches over the firmware.
pub struct ChipWatchdog(Watchdog);

impl ChipWatchdog {
    /// Starts the watchdog, which waits while a debugger has halted the processor.
    pub fn start(watchdog: Peri<'static, WATCHDOG>) -> Self {
        let mut watchdog = Watchdog::new(watchdog);
        watchdog.pause_on_debug(true);
        watchdog.start(PERIOD);
        Self(watchdog)
    }
}

impl health::Health for ChipWatchdog {
    fn feed_watchdog(&mut self) {
        self.0.feed(PERIOD);
    }

    fn deepest_stack_bytes(&mut self) -> Option<u32> {
        Some(stack::deepest_bytes())
    }
}
