//! Packets over a radio whose own packets are shorter.

use super::Link;
use fabswarm_shared::wire::fragment::{Fragmenter, Reassembler};

/// Makes a link for packets of up to `PACKET` bytes of a radio that carries `MTU`.
#[derive(Debug)]
pub struct FragmentedLink<L, const MTU: usize, const PACKET: usize, const SLOTS: usize> {
    radio: L,
    sender: u16,
    sent: u16,
    reassembler: Reassembler<PACKET, SLOTS>,
    buffer: [u8; MTU],
}

impl<L, const MTU: usize, const PACKET: usize, const SLOTS: usize> FragmentedLink<L, MTU, PACKET, SLOTS> {
    /// Speaks over `radio` in the name of `sender`.
    pub const fn new(radio: L, sender: u16) -> Self {
        const { fabswarm_shared::wire::fragment::require_fit(PACKET, MTU) };
        Self { radio, sender, sent: 0, reassembler: Reassembler::new(), buffer: [0; MTU] }
    }
}

impl<L: Link, const MTU: usize, const PACKET: usize, const SLOTS: usize> Link
    for FragmentedLink<L, MTU, PACKET, SLOTS>
{
    async fn send(&mut self, packet: &[u8]) {
        self.sent = self.sent.wrapping_add(1);
        let Ok(mut fragmenter) = Fragmenter::new(packet, self.sender, self.sent, MTU) else {
            warn!("a packet of {} bytes is too long for the radio", packet.len());
            return;
        };
        while let Ok(Some(part)) = fragmenter.next_packet(&mut self.buffer) {
            self.radio.send(part).await;
        }
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        loop {
            let length = self.radio.receive(&mut self.buffer).await;
            // A part that fits nothing is a stranger's: the frames around it are not touched by it.
            if let Ok(Some(whole)) = self.reassembler.receive(&self.buffer[..length]) {
                let length = whole.len().min(packet.len());
                packet[..length].copy_from_slice(&whole[..length]);
                return length;
            }
        }
    }
}
