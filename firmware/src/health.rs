//! A board's watchdog, stack gauge, reset and light.

use fabswarm_shared::packet::ResetCause;

/// Bytes of a panic's message that fit a boot packet.
pub const PANIC_BYTES: usize = 160;

/// Monitors the firmware of a board.
pub trait Health {
    /// Restarts the watchdog's timeout.
    fn feed_watchdog(&mut self);

    /// Returns the most stack used since the start, in bytes, if the board can measure it.
    fn deepest_stack_bytes(&mut self) -> Option<u32> {
        None
    }

    /// Returns why the board started.
    fn reset_cause(&mut self) -> ResetCause {
        ResetCause::Unknown
    }

    /// Returns what the panic said that ended the last run, if one did: at most [`PANIC_BYTES`] bytes.
    fn last_panic(&mut self) -> Option<&'static str> {
        None
    }

    /// Restarts the board. Returns only on a board that cannot.
    fn reset(&mut self) {}

    /// Turns the board's light on or off, if it has one.
    fn set_light(&mut self, _is_on: bool) {}
}
