//! A board's watchdog and stack gauge.

/// Monitors the firmware of a board.
pub trait Health {
    /// Restarts the watchdog's timeout.
    fn feed_watchdog(&mut self);

    /// Returns the most stack used since the start, in bytes, if the board can measure it.
    fn deepest_stack_bytes(&mut self) -> Option<u32> {
        None
    }
}
