//! Times of a packet on a kind of radio.

use crate::scenario::{RadioFamily, RadioSection};
use fabswarm_shared::wire::fragment::{self, PART_HEADER, WHOLE_HEADER};
use std::fmt;

/// Chirps of a LoRa radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoraModulation {
    /// Spreading factor, 7 to 12.
    pub spreading: u8,
    /// Bandwidth in kHz: 125, 250 or 500.
    pub bandwidth_khz: u16,
    /// The legal limit of the band: the share of an hour in which a transmitter may send, in per mille.
    pub duty_per_mille: u16,
}

impl Default for LoraModulation {
    /// The fastest of the usual settings, in the European band of 868.0 to 868.6 MHz.
    fn default() -> Self {
        Self { spreading: 7, bandwidth_khz: 125, duty_per_mille: 10 }
    }
}

/// A kind of radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RadioKind {
    /// IEEE 802.15.4 at 2.4 GHz, 250 kbit/s.
    Ieee802154,
    /// ESP-NOW v2: vendor frames of 802.11b at 1 Mbit/s.
    EspNow,
    /// LoRa below 1 GHz.
    Lora(LoraModulation),
    /// No radio: a host carries frames between boards that it emulates, whenever it comes to it.
    Carried,
}

impl fmt::Display for RadioKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ieee802154 => f.write_str("802.15.4"),
            Self::EspNow => f.write_str("ESP-NOW"),
            Self::Lora(LoraModulation { spreading, bandwidth_khz, .. }) => {
                write!(f, "LoRa SF{spreading} {bandwidth_khz} kHz")
            }
            Self::Carried => f.write_str("carried by the host"),
        }
    }
}

/// The times and powers of a radio. Powers are typical values of data sheets, with the processor awake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioTiming {
    /// Which radio.
    pub kind: RadioKind,
    /// Bytes of a frame or fragment that fit one packet.
    pub mtu: usize,
    /// From the end of a packet to the start of the next one of the same frame.
    pub gap_us: u32,
    /// From when a packet is asked for to its first bit; receivers know it.
    pub delay_us: u32,
    /// By how much it may begin later: what a radio does that listens before it talks by itself.
    pub access_us: u32,
    /// For how long before a packet is asked for its board no longer listens: it is passed to the radio early.
    pub lead_us: u32,
    /// How long the clock of a board with this radio shows the same time.
    pub clock_tick_us: f64,
    /// By how much the arrival of a packet may be mistaken.
    pub tick_us: u32,
    /// The share of time in which a transmitter may send, by law.
    pub duty_limit: Option<f64>,
    /// While it sends.
    pub transmit_mw: f64,
    /// While it listens.
    pub receive_mw: f64,
}

/// The firmware passes a packet to its radio 200 µs before its time, by a clock of up to 31 µs a tick.
const LEAD_US: u32 = 200 + 2 * 31;
/// 802.15.4: preamble, start of frame and length.
const SYNCHRONISATION_BYTES: usize = 6;
/// 802.15.4: frame control of a data frame without addresses and without sequence number, and checksum.
const MAC_BYTES: usize = 2 + 2;

impl RadioTiming {
    /// The radio of this kind.
    pub fn new(kind: RadioKind) -> Self {
        let silent = Self {
            kind,
            mtu: 1470,
            gap_us: 0,
            delay_us: 0,
            access_us: 0,
            lead_us: LEAD_US,
            clock_tick_us: 1.0,
            tick_us: 0,
            duty_limit: None,
            transmit_mw: 0.0,
            receive_mw: 0.0,
        };
        match kind {
            RadioKind::Ieee802154 => Self {
                mtu: 127 - MAC_BYTES,
                // Reading out the packet, and turning to the channel.
                gap_us: 300,
                // A look at the channel of 128 µs, and the turnaround of the transmitter.
                delay_us: 128 + 140,
                // The low-frequency clock of an nRF52840, half of whose tick a time is off.
                clock_tick_us: 1e6 / 32_768.0,
                tick_us: 16,
                transmit_mw: 3.0 * 9.0,
                receive_mw: 3.0 * 9.5,
                ..silent
            },
            RadioKind::EspNow => Self {
                gap_us: 1000,
                // DIFS and 31 slots of 20 µs: the radio's own backoff.
                access_us: 50 + 31 * 20,
                tick_us: 150,
                transmit_mw: 3.3 * 335.0,
                receive_mw: 3.3 * 84.0,
                ..silent
            },
            RadioKind::Lora(lora) => Self {
                mtu: 255,
                gap_us: 5000,
                tick_us: (symbol_us(lora) / 8.0) as u32 + 10,
                duty_limit: Some(f64::from(lora.duty_per_mille) / 1000.0),
                transmit_mw: 3.3 * (45.0 + 4.0),
                receive_mw: 3.3 * (5.3 + 4.0),
                ..silent
            },
            RadioKind::Carried => Self { access_us: 1000, lead_us: 0, tick_us: 2500, ..silent },
        }
    }

    /// The radio that a scenario chooses.
    pub fn of(radio: &RadioSection) -> Self {
        Self::new(match radio.kind {
            RadioFamily::Ieee802154 => RadioKind::Ieee802154,
            RadioFamily::EspNow => RadioKind::EspNow,
            RadioFamily::Carried => RadioKind::Carried,
            RadioFamily::Lora => RadioKind::Lora(LoraModulation {
                spreading: radio.spreading,
                bandwidth_khz: radio.bandwidth_khz,
                duty_per_mille: (10.0 * radio.duty_percent).min(1000.0) as u16,
            }),
        })
    }

    /// Time on the air of a packet with `bytes` of a frame or fragment.
    pub fn packet_us(&self, bytes: usize) -> u32 {
        match self.kind {
            RadioKind::Ieee802154 => ((SYNCHRONISATION_BYTES + MAC_BYTES + bytes) * 32) as u32,
            RadioKind::EspNow => {
                // Long preamble; MAC header, category, organisation, random value, elements of up to 250 bytes, checksum.
                let elements = 7 * bytes.div_ceil(250).max(1);
                192 + ((24 + 1 + 3 + 4 + elements + bytes + 4) * 8) as u32
            }
            RadioKind::Lora(lora) => lora_packet_us(lora, bytes),
            RadioKind::Carried => 1000,
        }
    }

    /// Packets of a frame of `bytes`, by their lengths, fragment headers included. A frame that needs too many has none.
    pub fn packets(&self, bytes: usize) -> impl Iterator<Item = usize> {
        let count = fragment::packets(bytes, self.mtu).unwrap_or(0);
        let header = if count <= 1 { WHOLE_HEADER } else { PART_HEADER };
        let room = self.mtu - header;
        (0..count).map(move |index| header + bytes.saturating_sub(index * room).min(room))
    }

    /// Time that the transmitter is on for a frame of `bytes`.
    pub fn airtime_us(&self, bytes: usize) -> u32 {
        self.packets(bytes).map(|packet| self.packet_us(packet)).sum()
    }

    /// Time from when a frame's first packet is asked for to the end of its last, at most.
    pub fn frame_us(&self, bytes: usize) -> u32 {
        let packets = self.packets(bytes).count() as u32;
        self.airtime_us(bytes)
            + packets.saturating_sub(1) * self.gap_us
            + packets * (self.delay_us + self.access_us)
    }

    /// The time of a slot for these frames, one after the other: the board of the next one does not listen to its end.
    pub fn slot_us(&self, frames: &[usize]) -> u32 {
        let frames = frames.iter().filter(|&&bytes| bytes > 0);
        let taken_us: u32 = frames.map(|&bytes| self.frame_us(bytes) + self.gap_us).sum();
        if taken_us == 0 { 0 } else { taken_us - self.gap_us + self.lead_us }
    }
}

fn symbol_us(lora: LoraModulation) -> f64 {
    libm::ldexp(1000.0 / f64::from(lora.bandwidth_khz), lora.spreading.into())
}

/// The formula of the SX126x data sheet: preamble of 8 symbols, explicit header, checksum, code rate 4/5.
fn lora_packet_us(lora: LoraModulation, bytes: usize) -> u32 {
    let symbol_us = symbol_us(lora);
    let spreading = f64::from(lora.spreading);
    // The low-data-rate optimisation is on where a symbol takes longer than 16 ms.
    let reduced = if symbol_us > 16_000.0 { 2.0 } else { 0.0 };
    let bits = (8.0 * bytes as f64 - 4.0 * spreading + 28.0 + 16.0).max(0.0);
    let payload = 8.0 + libm::ceil(bits / (4.0 * (spreading - reduced))) * 5.0;
    ((8.0 + 4.25 + payload) * symbol_us) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_take_what_the_standards_say() {
        let ieee = RadioTiming::new(RadioKind::Ieee802154);
        assert_eq!(ieee.packet_us(123), 133 * 32, "127 bytes with their synchronisation header");
        // Semtech's calculator: SF7, 125 kHz, 50 bytes in 97.5 ms; SF12 in 2301.9 ms.
        let lora = |spreading| {
            RadioTiming::new(RadioKind::Lora(LoraModulation { spreading, ..LoraModulation::default() }))
        };
        assert_eq!(lora(7).packet_us(50), 97_536);
        assert_eq!(lora(12).packet_us(50), 2_301_952);
        assert_eq!(RadioTiming::new(RadioKind::EspNow).packet_us(250), 192 + 293 * 8);
    }

    #[test]
    fn a_frame_takes_as_many_packets_as_the_fragmenter_makes() {
        let ieee = RadioTiming::new(RadioKind::Ieee802154);
        let mut buffer = [0; 127];
        for bytes in [1, 100, 122, 123, 124, 240, 367, 381] {
            let frame = vec![7; bytes];
            let mut fragmenter = fragment::Fragmenter::new(&frame, 1, 2, ieee.mtu).unwrap();
            let mut lengths = Vec::new();
            while let Some(packet) = fragmenter.next_packet(&mut buffer).unwrap() {
                lengths.push(packet.len());
            }
            assert_eq!(ieee.packets(bytes).collect::<Vec<_>>(), lengths, "{bytes} bytes");
        }
    }
}
