//! Long packets over a radio with shorter ones.

use super::Link;
use fabswarm_shared::wire::fragment::{Fragmenter, Reassembler};

/// Carries packets of up to `PACKET` bytes over a radio whose packets hold `MTU` bytes.
#[derive(Debug)]
pub struct FragmentedLink<L, const MTU: usize, const PACKET: usize, const SLOTS: usize> {
    radio: L,
    sender: u16,
    sent: u16,
    reassembler: Reassembler<PACKET, SLOTS>,
    buffer: [u8; MTU],
}

impl<L, const MTU: usize, const PACKET: usize, const SLOTS: usize> FragmentedLink<L, MTU, PACKET, SLOTS> {
    /// Creates a link over `radio` for agent `sender`.
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
            // An invalid fragment is dropped; it does not affect the frames being reassembled.
            if let Ok(Some(whole)) = self.reassembler.receive(&self.buffer[..length]) {
                let length = whole.len().min(packet.len());
                packet[..length].copy_from_slice(&whole[..length]);
                return length;
            }
        }
    }
}
