//! Long packets over a radio with shorter ones.

use super::Link;
use embassy_time::Instant;
use fabswarm_shared::wire::fragment::{Fragmenter, Reassembler, first_number};

/// Carries packets of up to `PACKET` bytes over a radio whose packets hold `MTU` bytes.
#[derive(Debug)]
pub struct FragmentedLink<L, const MTU: usize, const PACKET: usize, const SLOTS: usize> {
    radio: L,
    sender: u16,
    /// The number of the next packet.
    number: u16,
    reassembler: Reassembler<PACKET, SLOTS>,
    /// When the first fragment of a frame last arrived.
    arrived: Option<Instant>,
    buffer: [u8; MTU],
}

impl<L, const MTU: usize, const PACKET: usize, const SLOTS: usize> FragmentedLink<L, MTU, PACKET, SLOTS> {
    /// Creates a link over `radio`.
    pub const fn new(radio: L) -> Self {
        const { fabswarm_shared::wire::fragment::require_fit(PACKET, MTU) };
        Self { radio, sender: 0, number: 0, reassembler: Reassembler::new(), arrived: None, buffer: [0; MTU] }
    }
}

impl<L: Link, const MTU: usize, const PACKET: usize, const SLOTS: usize> Link
    for FragmentedLink<L, MTU, PACKET, SLOTS>
{
    fn start(&mut self, sender: u16, boot: u32, has_slots: bool) {
        self.radio.start(sender, boot, has_slots);
        self.sender = sender;
        self.number = first_number(boot);
    }

    async fn send(&mut self, packet: &[u8]) {
        let number = self.number;
        self.number = number.wrapping_add(1);
        let Ok(mut fragmenter) = Fragmenter::new(packet, self.sender, number, MTU) else {
            warn!("a packet of {} bytes is too long for the radio", packet.len());
            return;
        };
        while let Ok(Some(part)) = fragmenter.next_packet(&mut self.buffer) {
            self.radio.send(part).await;
        }
    }

    fn arrived(&self) -> Option<Instant> {
        self.arrived
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        if let Some(whole) = self.reassembler.next_frame() {
            return copy(whole, packet);
        }
        loop {
            let length = self.radio.receive(&mut self.buffer).await;
            // A frame arrives with its first fragment; in slots, those of one sender follow each other.
            if let [1, ..] | [_, 0, ..] = self.buffer[..length] {
                self.arrived = self.radio.arrived();
            }
            // An invalid fragment is dropped; it does not affect the frames being reassembled.
            if let Ok(Some(whole)) = self.reassembler.receive(&self.buffer[..length]) {
                return copy(whole, packet);
            }
        }
    }
}

fn copy(whole: &[u8], packet: &mut [u8]) -> usize {
    let length = whole.len().min(packet.len());
    packet[..length].copy_from_slice(&whole[..length]);
    length
}
