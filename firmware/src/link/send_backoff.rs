//! Back-off for a link whose other end may not read.

use super::Link;
use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Instant, Timer};

/// Back-off for a link whose other end does not read. While we wait to send we cannot receive, so after one timeout later packets are
/// only polled once and dropped. Every 64th packet gets the full timeout again, since a long packet may need it.
#[derive(Debug, Default)]
pub(super) struct SendBackoff {
    /// Packets dropped since the last one that was sent.
    untaken: u32,
}

impl SendBackoff {
    /// Packets after which a link that takes none is waited for again.
    const AGAIN_AFTER: u32 = 64;

    /// Sends a packet at `at`, or drops it. Returns whether it is the first to be dropped.
    pub(super) async fn send<L: Link>(
        &mut self,
        link: &mut L,
        packet: &[u8],
        at: Instant,
        timeout: Duration,
    ) -> bool {
        // Most links accept a packet at once: the clock is read only if one does not.
        let expiry = async {
            if self.untaken.is_multiple_of(Self::AGAIN_AFTER) {
                Timer::after(timeout).await;
            }
        };
        let is_dropped = matches!(select(link.send_at(packet, at), expiry).await, Either::Second(()));
        self.untaken = if is_dropped { self.untaken.wrapping_add(1) } else { 0 };
        is_dropped && self.untaken == 1
    }
}
