//! The chip's watchdog.

use embassy_nrf::{
    Peri, peripherals,
    wdt::{Config, HaltConfig, Watchdog, WatchdogHandle},
};
use fabswarm_firmware::health;

const TICKS_PER_SECOND: u32 = 32_768;
const PERIOD_S: u32 = 8;

/// What watches over the firmware.
pub struct ChipWatchdog(Option<WatchdogHandle>);

impl ChipWatchdog {
    /// Starts the watchdog, unless a debugger has started it otherwise.
    pub fn start(watchdog: Peri<'static, peripherals::WDT>) -> Self {
        let mut config = Config::default();
        config.timeout_ticks = PERIOD_S * TICKS_PER_SECOND;
        // A breakpoint is no hang.
        config.action_during_debug_halt = HaltConfig::Pause;
        Self(Watchdog::try_new(watchdog, config).ok().map(|(_, [handle])| handle))
    }
}

impl health::Health for ChipWatchdog {
    fn feed_watchdog(&mut self) {
        if let Some(handle) = &mut self.0 {
            handle.pet();
        }
    }

    fn reset(&mut self) {
        cortex_m::peripheral::SCB::sys_reset();
    }
}
