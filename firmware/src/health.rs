//! What a board tells of its own condition, and what restarts it when its firmware hangs.

/// The parts of a board that watch over the firmware.
pub trait Health {
    /// Puts the watchdog's reset off once more.
    fn feed_watchdog(&mut self);

    /// The most stack used since the start, in bytes, where the board can tell.
    fn deepest_stack_bytes(&mut self) -> Option<u32> {
        None
    }
}
