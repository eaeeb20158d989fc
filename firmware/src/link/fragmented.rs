//! Long packets over a radio with shorter ones.

use super::{AirKind, Link, copy};
use crate::PACKET;
use embassy_time::Instant;
use fabswarm_shared::packet::RadioState;
use fabswarm_shared::wire::fragment::{Fragmenter, Reassembler, first_number, packets};

/// Frames that are put together at once, for each sender that may be heard at once. In slots there is one at a time: its frame is put
/// together whatever was lost of those before it.
const SLOTS_PER_SENDER: usize = 4;

/// Carries packets over a radio whose packets hold `MTU` bytes.
#[derive(Debug)]
pub struct FragmentedLink<L, const MTU: usize, const SLOTS: usize> {
    radio: L,
    sender: u16,
    /// The number of the next packet.
    number: u16,
    reassembler: Reassembler<PACKET, SLOTS>,
    buffer: [u8; MTU],
}

impl<L, const MTU: usize, const SLOTS: usize> FragmentedLink<L, MTU, SLOTS> {
    /// Creates a link over `radio`.
    pub const fn new(radio: L) -> Self {
        const {
            assert!(
                SLOTS >= SLOTS_PER_SENDER || packets_of(MTU) == 1,
                "frames of several packets need four slots for each sender that may be heard at once"
            );
        };
        Self { radio, sender: 0, number: 0, reassembler: Reassembler::new(), buffer: [0; MTU] }
    }
}

impl<L: Link, const MTU: usize, const SLOTS: usize> Link for FragmentedLink<L, MTU, SLOTS> {
    fn start(&mut self, sender: u16, boot: u32, air: AirKind) {
        self.radio.start(sender, boot, air);
        self.sender = sender;
        self.number = first_number(boot);
    }

    async fn send(&mut self, packet: &[u8]) {
        self.send_at(packet, Instant::MIN).await;
    }

    async fn send_at(&mut self, packet: &[u8], mut at: Instant) {
        let number = self.number;
        self.number = number.wrapping_add(1);
        let Ok(mut fragmenter) = Fragmenter::new(packet, self.sender, number, MTU) else {
            warn!("a packet of {} bytes is too long for the radio", packet.len());
            return;
        };
        while let Ok(Some(part)) = fragmenter.next_packet(&mut self.buffer) {
            self.radio.send_at(part, core::mem::replace(&mut at, Instant::MIN)).await;
        }
    }

    fn radio_state(&self) -> Option<RadioState> {
        self.radio.radio_state()
    }

    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
        let mut received = self.reassembler.next_frame().map(|whole| copy(whole, packet));
        loop {
            if let Some(length) = received {
                return (length, Instant::from_micros(self.reassembler.arrival_us()));
            }
            let (length, arrived) = self.radio.receive(&mut self.buffer).await;
            // An invalid fragment is dropped; it does not affect the frames being reassembled.
            let whole = self.reassembler.receive_at(arrived.as_micros(), &self.buffer[..length]);
            received = whole.unwrap_or(None).map(|whole| copy(whole, packet));
        }
    }
}

/// Packets of `mtu` bytes that the longest packet takes.
///
/// # Panics
/// When it takes more than a radio can number; call it in a `const`.
#[must_use]
pub const fn packets_of(mtu: usize) -> usize {
    match packets(PACKET, mtu) {
        Ok(packets) => packets,
        Err(_) => panic!("the packet needs more than 255 packets of this radio"),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::fake::FakeLink;
    use super::*;
    use embassy_futures::block_on;
    use proptest::{collection::vec, prelude::*};
    use std::collections::VecDeque;
    use std::vec::Vec;

    /// The packets of a frame.
    fn packets_of_frame(sender: u16, number: u16) -> Vec<Vec<u8>> {
        let frame = [sender as u8; 100];
        let (mut fragmenter, mut buffer) = (Fragmenter::new(&frame, sender, number, 31).unwrap(), [0; 31]);
        core::iter::from_fn(|| fragmenter.next_packet(&mut buffer).unwrap().map(<[u8]>::to_vec)).collect()
    }

    /// Hears `packets`, and returns how many whole frames they were.
    fn whole_frames<const SLOTS: usize>(packets: Vec<Vec<u8>>) -> usize {
        let mut link = FragmentedLink::<_, 31, SLOTS>::new(FakeLink::hearing(packets));
        let mut packet = [0; 128];
        let mut whole = 0;
        // It waits for ever when nothing is left.
        while embassy_futures::poll_once(link.receive(&mut packet)).is_ready() {
            whole += 1;
        }
        whole
    }

    proptest! {
        /// With four slots, senders that follow each other get every frame through of which nothing was lost.
        #[test]
        fn four_slots_are_enough_for_senders_in_turn(lost in vec(any::<[bool; 4]>(), 1..60), senders in 1_u16..20) {
            let mut packets = Vec::new();
            for (round, lost) in lost.iter().enumerate() {
                let (sender, number) = (round as u16 % senders, round as u16 / senders);
                let parts = packets_of_frame(sender, number);
                packets.extend(parts.into_iter().zip(lost).filter(|(_, lost)| !**lost).map(|(part, _)| part));
            }
            let expected = lost.iter().filter(|lost| lost.iter().all(|lost| !lost)).count();
            prop_assert_eq!(whole_frames::<4>(packets), expected);
        }

        /// With eight, two that send at once.
        #[test]
        fn eight_slots_are_enough_for_two_at_once(pairs in vec((any::<u8>(), any::<u8>()), 1..30)) {
            let mut packets = Vec::new();
            let mut expected = 0;
            for (round, (order, lost)) in pairs.into_iter().enumerate() {
                let mut pair = [0, 1].map(|side| packets_of_frame(2 * (round as u16 % 5) + side, round as u16));
                // A part of one of the two may be lost.
                let is_lost = lost % 2 == 1;
                if is_lost {
                    pair[0].remove((lost / 2 % 4).into());
                }
                expected += if is_lost { 1 } else { 2 };
                let mut pair = pair.map(VecDeque::from);
                for turn in 0..8 {
                    let side = usize::from(order >> turn & 1);
                    packets.extend(pair[side].pop_front());
                }
                packets.extend(pair.into_iter().flatten());
            }
            prop_assert_eq!(whole_frames::<8>(packets), expected);
        }
    }

    #[test]
    fn a_frame_that_fits_one_packet_needs_no_slots() {
        let mut link =
            FragmentedLink::<_, { PACKET + 1 }, 1>::new(FakeLink::hearing([[&[1][..], &[7; 32]].concat()]));
        let mut packet = [0; 32];
        assert_eq!((block_on(link.receive(&mut packet)).0, packet), (32, [7; 32]));
    }

    /// Whatever others send between the parts of a frame, it arrives with its own first part.
    #[test]
    fn forged_parts_do_not_change_when_a_frame_arrived() {
        let parts = packets_of_frame(3, 7);
        for forged in [[9, 0, 77, 0, 1, 1, 0xEE].to_vec(), [1, 0xEE].to_vec(), parts[0].clone()] {
            for place in 1..parts.len() {
                let mut packets = parts.clone();
                packets.insert(place, forged.clone());
                let mut link = FragmentedLink::<_, 31, 4>::new(FakeLink::hearing(packets));
                let mut packet = [0; 128];
                let arrived = loop {
                    if let (100, arrived) = block_on(link.receive(&mut packet)) {
                        break arrived;
                    }
                };
                assert_eq!(arrived, Instant::from_millis(1), "{forged:?} at {place}");
            }
        }
    }
}
