//! The phases of a board's life, and the reasons for its loss.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoardPhase {
    /// Killed.
    Down,
    /// Started; its boot packet has not arrived.
    Booting,
    /// Was sent a start packet; has not sent all frames of its first round.
    Starting,
    /// Goes through rounds.
    Up,
    /// Restarted by itself, was unplugged or does not answer; has not sent a boot packet since.
    Lost,
    /// Is there again, in this boot, and waits to be started.
    Returned { boot: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoardLoss {
    Restarted,
    /// Its watchdog or its panic handler restarted it.
    Failed,
    Unplugged,
    Silent,
    Hung,
}
