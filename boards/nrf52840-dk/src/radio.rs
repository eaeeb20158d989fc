//! The nRF52840's 802.15.4 radio as a packet link.

use embassy_nrf::radio::ieee802154::{Packet, Radio};
use fabswarm_firmware::link::{Link, received_length};

/// Bytes of a packet behind its length and before its checksum.
pub const MTU: usize = 125;

const CHANNEL: u8 = 15;

/// The radio on one channel.
pub struct RadioLink {
    radio: Radio<'static>,
    packet: Packet,
}

impl RadioLink {
    pub fn new(mut radio: Radio<'static>) -> Self {
        radio.set_channel(CHANNEL);
        Self { radio, packet: Packet::new() }
    }
}

impl Link for RadioLink {
    async fn send(&mut self, packet: &[u8]) {
        self.packet.copy_from_slice(packet);
        if self.radio.try_send(&mut self.packet).await.is_err() {
            // The channel was busy: a lost frame, as any other.
            defmt::debug!("the channel is busy");
        }
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        loop {
            let received = self.radio.receive(&mut self.packet).await;
            // Reading the packet panics if its length is wrong.
            let length = received_length(self.packet.len(), MTU.min(packet.len()));
            if let (Ok(()), Some(length)) = (received, length) {
                packet[..length].copy_from_slice(&self.packet[..length]);
                return length;
            }
        }
    }
}
