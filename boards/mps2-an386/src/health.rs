//! The CMSDK watchdog, and how deep the stack has been.

use crate::registers::Registers;
use fabswarm_board_parts::stack;
use fabswarm_firmware::health;

// SAFETY: address of application note AN386.
const WATCHDOG: Registers = unsafe { Registers::new(0x4000_8000) };

const LOAD: usize = 0x0;
const CONTROL: usize = 0x8;
const CLEAR: usize = 0xC;

/// The first time the counter runs out it raises an interrupt, the second time it resets. Long enough that a host
/// busy with a hundred boards starves none of them.
const HALF_PERIOD_S: u32 = 30;
const CLOCK_HZ: u32 = 25_000_000;

pub struct CmsdkWatchdog(());

impl CmsdkWatchdog {
    /// Starts the watchdog. Call once.
    pub fn start() -> Self {
        WATCHDOG.write(LOAD, HALF_PERIOD_S * CLOCK_HZ);
        WATCHDOG.write(CONTROL, 0b11); // count, and reset
        Self(())
    }
}

impl health::Health for CmsdkWatchdog {
    fn feed_watchdog(&mut self) {
        WATCHDOG.write(CLEAR, 1);
    }

    fn deepest_stack_bytes(&mut self) -> Option<u32> {
        Some(stack::deepest_bytes())
    }
}
