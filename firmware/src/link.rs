//! What a board must offer to be heard: packets out, packets in.

mod fragmented;
mod queue;

mod serial;
mod split;

pub use fragmented::FragmentedLink;
pub(crate) use queue::{PacketQueue, PacketReceiver, PacketSender, serve};
pub use serial::SerialLink;
pub use split::SplitLink;

/// A way to exchange whole packets with whoever is in reach. Packets may be lost, repeated or reordered; they are
/// never cut or joined.
#[allow(async_fn_in_trait, reason = "one executor, one core: nobody needs the futures to be Send")]
pub trait Link {
    /// Sends one packet. Returns when it has left, or was given up.
    async fn send(&mut self, packet: &[u8]);

    /// Waits for a packet and returns its length.
    ///
    /// Must be cancel-safe: dropping the future loses no packet that a later call could still return.
    async fn receive(&mut self, packet: &mut [u8]) -> usize;
}
