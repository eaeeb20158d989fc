//! How long to wait for a link whose other end may not read.

use super::Link;
use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Timer};

/// A link that does not take a packet is not waited for with every packet after it: whoever waits hears nothing. Until it takes one
/// it is tried once per packet, and with time only now and then, since a long packet may need some.
#[derive(Debug)]
pub(super) struct Patience {
    /// Packets that were not taken since the last that was.
    untaken: u32,
}

impl Patience {
    /// Packets after which a link that takes none is waited for again.
    const AGAIN_AFTER: u32 = 64;

    pub(super) const fn new() -> Self {
        Self { untaken: 0 }
    }

    /// Sends a packet, or drops it. Returns whether it is the first to be dropped.
    pub(super) async fn send<L: Link>(&mut self, link: &mut L, packet: &[u8], timeout: Duration) -> bool {
        // Most links accept a packet at once: the clock is read only if one does not.
        let patience = async {
            if self.untaken.is_multiple_of(Self::AGAIN_AFTER) {
                Timer::after(timeout).await;
            }
        };
        let is_dropped = matches!(select(link.send(packet), patience).await, Either::Second(()));
        self.untaken = if is_dropped { self.untaken.wrapping_add(1) } else { 0 };
        is_dropped && self.untaken == 1
    }
}
