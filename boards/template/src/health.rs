//! The chip's watchdog, why the chip started, a light on the board, and how deep the stack has been.

use embassy_nrf::{
    Peri,
    gpio::{AnyPin, Level, Output, OutputDrive},
    pac, peripherals,
    wdt::{Config, HaltConfig, Watchdog, WatchdogHandle},
};
use fabswarm_board_parts::{panic, stack};
use fabswarm_firmware::{health, packet::ResetCause};

const TICKS_PER_SECOND: u32 = 32_768;
const PERIOD_S: u32 = 8;

/// The watchdog and the light.
pub struct ChipHealth {
    watchdog: Option<WatchdogHandle>,
    light: Output<'static>,
}

impl ChipHealth {
    /// Starts the watchdog, unless a debugger has started it otherwise. The light shines while its pin is low.
    pub fn start(watchdog: Peri<'static, peripherals::WDT>, light: Peri<'static, AnyPin>) -> Self {
        let mut config = Config::default();
        config.timeout_ticks = PERIOD_S * TICKS_PER_SECOND;
        // A breakpoint is no hang.
        config.action_during_debug_halt = HaltConfig::Pause;
        Self {
            watchdog: Watchdog::try_new(watchdog, config).ok().map(|(_, [handle])| handle),
            light: Output::new(light, Level::High, OutputDrive::Standard),
        }
    }
}

/// Restarts the chip. Its RAM stays as it is.
pub fn restart() -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}

impl health::Health for ChipHealth {
    fn feed_watchdog(&mut self) {
        if let Some(handle) = &mut self.watchdog {
            handle.pet();
        }
    }

    fn deepest_stack_bytes(&mut self) -> Option<u32> {
        Some(stack::deepest_bytes())
    }

    fn reset_cause(&mut self) -> ResetCause {
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

    fn last_panic(&mut self) -> Option<&'static str> {
        panic::take()
    }

    fn reset(&mut self) {
        restart();
    }

    fn set_light(&mut self, is_on: bool) {
        self.light.set_level((!is_on).into());
    }
}
