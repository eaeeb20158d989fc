//! The chip's watchdog and why the chip started.

use crate::panic;
use esp_hal::{
    rtc_cntl::{Rwdt, RwdtStage, SocResetReason},
    system,
    time::Duration,
};
use fabswarm_firmware::{health, packet::ResetCause};

const WATCHDOG_PERIOD: Duration = Duration::from_secs(8);

pub struct EspHealth {
    watchdog: Rwdt,
}

impl EspHealth {
    pub fn start(mut watchdog: Rwdt) -> Self {
        watchdog.set_timeout(RwdtStage::Stage0, WATCHDOG_PERIOD);
        watchdog.enable();
        Self { watchdog }
    }
}

impl health::Health for EspHealth {
    fn feed_watchdog(&mut self) {
        self.watchdog.feed();
    }

    fn reset_cause(&mut self) -> ResetCause {
        match system::reset_reason() {
            Some(SocResetReason::ChipPowerOn | SocResetReason::SysBrownOut) => ResetCause::Power,
            Some(SocResetReason::CoreSw | SocResetReason::Cpu0Sw) => ResetCause::Software,
            Some(SocResetReason::CoreUsbUart | SocResetReason::CoreUsbJtag) => ResetCause::Pin,
            Some(
                SocResetReason::CoreMwdt0
                | SocResetReason::CoreMwdt1
                | SocResetReason::CoreRtcWdt
                | SocResetReason::Cpu0Mwdt0
                | SocResetReason::Cpu0Mwdt1
                | SocResetReason::Cpu0RtcWdt
                | SocResetReason::SysRtcWdt
                | SocResetReason::SysSuperWdt,
            ) => ResetCause::Watchdog,
            _ => ResetCause::Unknown,
        }
    }

    fn last_panic(&mut self) -> Option<&'static str> {
        panic::take()
    }

    fn reset(&mut self) {
        system::software_reset()
    }
}
