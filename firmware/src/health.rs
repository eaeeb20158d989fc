//! A board's watchdog, stack gauge, reset and light.

/// Monitors the firmware of a board.
pub trait Health {
    /// Restarts the watchdog's timeout.
    fn feed_watchdog(&mut self);

    /// Returns the most stack used since the start, in bytes, if the board can measure it.
    fn deepest_stack_bytes(&mut self) -> Option<u32> {
        None
    }

    /// Restarts the board. Returns only on a board that cannot.
    fn reset(&mut self) {}

    /// Turns the board's light on or off, if it has one.
    fn set_light(&mut self, _is_on: bool) {}
}
