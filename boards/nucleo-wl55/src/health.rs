//! The chip's watchdog, why the chip started, a light on the board, and how deep the stack has been.

use embassy_stm32::{
    Peri,
    gpio::{AnyPin, Level, Output, Speed},
    pac, peripherals,
    wdg::IndependentWatchdog,
};
use fabswarm_board_parts::{panic, stack};
use fabswarm_firmware::{health, packet::ResetCause};

const PERIOD_US: u32 = 8_000_000;

/// The watchdog and the light.
pub struct WlHealth {
    watchdog: IndependentWatchdog<'static, peripherals::IWDG>,
    light: Output<'static>,
    /// The level of the light's pin while it shines.
    shining: Level,
}

impl WlHealth {
    /// Starts the watchdog, which waits while a debugger has halted the processor. The light shines while its pin has the level `shining`.
    pub fn start(
        watchdog: Peri<'static, peripherals::IWDG>,
        light: Peri<'static, AnyPin>,
        shining: Level,
    ) -> Self {
        pac::DBGMCU.apb1fzr1().modify(|freeze| freeze.set_iwdg(true));
        let mut watchdog = IndependentWatchdog::new(watchdog, PERIOD_US);
        watchdog.unleash();
        let dark = if shining == Level::High { Level::Low } else { Level::High };
        Self { watchdog, light: Output::new(light, dark, Speed::Low), shining }
    }
}

/// Restarts the chip. Its RAM stays as it is.
pub fn restart() -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}

impl health::Health for WlHealth {
    fn feed_watchdog(&mut self) {
        self.watchdog.pet();
    }

    fn deepest_stack_bytes(&mut self) -> Option<u32> {
        Some(stack::deepest_bytes())
    }

    fn reset_cause(&mut self) -> ResetCause {
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

    fn last_panic(&mut self) -> Option<&'static str> {
        panic::take()
    }

    fn reset(&mut self) {
        restart();
    }

    fn set_light(&mut self, is_on: bool) {
        self.light.set_level((is_on == (self.shining == Level::High)).into());
    }
}
