//! The nRF52840's 802.15.4 radio as a packet link.

use embassy_nrf::radio::ieee802154::{Packet, Radio};
use embassy_time::{Duration, Instant};
use fabswarm_firmware::{
    PACKET,
    link::{Link, ListeningLink, packets_of, received_length},
};

/// The shortest header of IEEE 802.15.4-2015: a data frame without sequence number and addresses. Other networks on the channel
/// see what it is, and ours are told apart by their keys.
const MAC_HEADER: [u8; 2] = 0x2101_u16.to_le_bytes();

/// Bytes of a packet behind its length and before its checksum.
const PAYLOAD: usize = Packet::CAPACITY as usize;

/// Bytes of a packet behind its MAC header.
pub const MTU: usize = PAYLOAD - MAC_HEADER.len();

/// Frames on their way in at once: four for each of two neighbours that send at the same time.
pub const SLOTS: usize = 8;

/// Packets that wait to be sent: a frame, and news about members in front of it.
const SENT: usize = 2 * packets_of(PACKET, MTU);

/// What the board has of the radio, which listens meanwhile.
pub type BoardEnd<'a> = ListeningLink<'a, MTU, SENT>;

const CHANNEL: u8 = 15;

/// From the call that sends a packet to its first bit: the receiver ramps up, listens, and the transmitter ramps up.
const SEND_DELAY_US: u64 = 140 + 128 + 140;
/// Time on the air of a byte.
const BYTE_US: u64 = 32;
/// Bytes on the air besides those of a packet: preamble, start of frame and length before it, checksum behind it.
const EXTRA_BYTES: u64 = 6 + 2;

/// The radio on one channel.
pub struct RadioLink {
    radio: Radio<'static>,
    packet: Packet,
    /// When the last packet was to be sent, by its sender's clock.
    arrived: Instant,
}

impl RadioLink {
    pub fn new(mut radio: Radio<'static>) -> Self {
        radio.set_channel(CHANNEL);
        Self { radio, packet: Packet::new(), arrived: Instant::MIN }
    }
}

impl Link for RadioLink {
    async fn send(&mut self, packet: &[u8]) {
        self.try_send(packet).await;
    }

    async fn try_send(&mut self, packet: &[u8]) -> bool {
        let mut bytes = [0; PAYLOAD];
        let length = MAC_HEADER.len() + packet.len().min(MTU);
        bytes[..MAC_HEADER.len()].copy_from_slice(&MAC_HEADER);
        bytes[MAC_HEADER.len()..length].copy_from_slice(&packet[..length - MAC_HEADER.len()]);
        self.packet.copy_from_slice(&bytes[..length]);
        self.radio.try_send(&mut self.packet).await.is_ok()
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        loop {
            let received = self.radio.receive(&mut self.packet).await;
            let now = Instant::now();
            // Reading the packet panics if its length is wrong.
            let length = received_length(self.packet.len(), PAYLOAD);
            let (Ok(()), Some(length)) = (received, length) else { continue };
            let Some(payload) = self.packet[..length].strip_prefix(&MAC_HEADER) else { continue };
            let Some(room) = packet.get_mut(..payload.len()) else { continue };
            room.copy_from_slice(payload);
            let on_air_us = BYTE_US * (length as u64 + EXTRA_BYTES) + SEND_DELAY_US;
            self.arrived = now.checked_sub(Duration::from_micros(on_air_us)).unwrap_or(now);
            return payload.len();
        }
    }

    fn arrived(&self) -> Option<Instant> {
        Some(self.arrived)
    }
}
