//! The health of a board with a Cortex-M: its watchdog, why it started, its last panic, a light, and how deep the stack has been.

use crate::{panic, stack};
use fabswarm_firmware::{health::Health, packet::ResetCause};

/// The functions of a chip that differ between chips.
#[derive(Debug)]
pub struct CortexHealth<W, L> {
    pub feed_watchdog: W,
    pub set_light: L,
    pub reset_cause: ResetCause,
    /// Restarts the chip. Its RAM stays as it is.
    pub restart: fn() -> !,
}

impl<W: FnMut(), L: FnMut(bool)> Health for CortexHealth<W, L> {
    fn feed_watchdog(&mut self) {
        (self.feed_watchdog)();
    }

    fn deepest_stack_bytes(&mut self) -> Option<u32> {
        Some(stack::deepest_bytes())
    }

    fn reset_cause(&mut self) -> ResetCause {
        self.reset_cause
    }

    fn last_panic(&mut self) -> Option<&'static str> {
        panic::take()
    }

    fn reset(&mut self) {
        (self.restart)()
    }

    fn set_light(&mut self, is_on: bool) {
        (self.set_light)(is_on);
    }
}

/// Restarts a chip whose RAM stays as it is after a request of its processor.
pub fn restart() -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}
