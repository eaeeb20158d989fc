//! Links: how a board sends and receives packets.

mod fragmented;
mod queue;

mod serial;
mod split;

pub use fragmented::FragmentedLink;
pub(crate) use queue::{PacketQueue, PacketReceiver, PacketSender, serve};
pub use serial::SerialLink;
pub use split::SplitLink;

/// Exchanges whole packets with everyone in range. Packets may be lost, repeated or reordered, but never truncated or
/// merged.
#[allow(async_fn_in_trait, reason = "one executor on one core: the futures need not be Send")]
pub trait Link {
    /// Sends one packet. Returns when it was sent or dropped.
    async fn send(&mut self, packet: &[u8]);

    /// Waits for a packet and returns its length.
    ///
    /// Must be cancel-safe: dropping the future loses no packet that a later call could still return.
    async fn receive(&mut self, packet: &mut [u8]) -> usize;
}
