//! Frames over a radio, everything else over a cable.

use super::{AirKind, Link, copy, send_backoff::SendBackoff};
use crate::PACKET;
use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Instant};
use fabswarm_shared::packet::{FRAME_OFFSET, RadioState, is_frame, write_frame_header};

/// The radio hears nothing while the cable takes a packet: one that it does not take within this time is dropped.
const CABLE_TIMEOUT: Duration = Duration::from_millis(20);

/// The link of a board in the field: frames go over a radio, without the byte that tells them from other packets. All other
/// packets go over a cable that may be unplugged; so do frames where a host is the board's air.
#[derive(Debug)]
pub struct SplitLink<R, C> {
    radio: R,
    cable: C,
    backoff: SendBackoff,
    is_by_radio: bool,
    /// Receives from the cable while the radio has the caller's buffer.
    from_cable: [u8; PACKET],
}

impl<R, C> SplitLink<R, C> {
    /// Joins both links into one.
    pub fn new(radio: R, cable: C) -> Self {
        Self { radio, cable, backoff: SendBackoff::default(), is_by_radio: false, from_cable: [0; PACKET] }
    }
}

impl<R: Link, C: Link> Link for SplitLink<R, C> {
    fn start(&mut self, sender: u16, boot: u32, air: AirKind) {
        self.is_by_radio = air != AirKind::Host;
        self.radio.start(sender, boot, air);
    }

    async fn send(&mut self, packet: &[u8]) {
        self.send_at(packet, Instant::MIN).await;
    }

    async fn send_at(&mut self, packet: &[u8], at: Instant) {
        match packet.get(FRAME_OFFSET..) {
            Some(frame) if self.is_by_radio && is_frame(packet) => self.radio.send_at(frame, at).await,
            _ if self.is_by_radio => {
                self.backoff.send(&mut self.cable, packet, at, CABLE_TIMEOUT).await;
            }
            // There is no radio to come back to.
            _ => self.cable.send_at(packet, at).await,
        }
    }

    fn radio_state(&self) -> Option<RadioState> {
        if self.is_by_radio { self.radio.radio_state() } else { None }
    }

    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
        if !self.is_by_radio {
            return self.cable.receive(packet).await;
        }
        loop {
            let Some(frame) = packet.get_mut(FRAME_OFFSET..) else { return (0, Instant::now()) };
            match select(self.radio.receive(frame), self.cable.receive(&mut self.from_cable)).await {
                // Anyone can send by radio and only frames are sealed: whatever comes from there is taken for a frame.
                Either::First((length, arrived)) if length > 0 && write_frame_header(packet).is_ok() => {
                    return (FRAME_OFFSET + length, arrived);
                }
                Either::First(_) => {}
                Either::Second((length, arrived)) => {
                    return (copy(&self.from_cable[..length], packet), arrived);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::fake::FakeLink;
    use super::*;
    use embassy_futures::block_on;
    use fabswarm_shared::packet::Packet;
    use std::vec;

    const SLOTS: AirKind = AirKind::Slots { late: Duration::from_millis(1) };

    /// Regression: every packet that was not read kept the radio deaf for 20 ms.
    #[test]
    fn a_host_that_does_not_read_costs_the_radio_one_timeout() {
        let cable = FakeLink { is_stuck: true, ..FakeLink::default() };
        let mut link = SplitLink::new(FakeLink::default(), cable);
        link.start(1, 1, SLOTS);
        let begun = Instant::now();
        (0..100).for_each(|_| block_on(link.send(&[0])));
        assert!(begun.elapsed() < 50 * CABLE_TIMEOUT, "{}", begun.elapsed().as_millis());
        assert_eq!(link.cable.sent.len(), 0);
        // Once the host reads again, every packet arrives.
        link.cable.is_stuck = false;
        (0..10).for_each(|_| block_on(link.send(&[0])));
        assert_eq!(link.cable.sent.len(), 10);
        assert!(begun.elapsed() < 50 * CABLE_TIMEOUT, "{}", begun.elapsed().as_millis());
    }

    /// Regression: frames went by radio wherever the board's air was, and the cable's packets were cut to 16 bytes, pages included.
    #[test]
    fn frames_go_where_the_air_is() {
        let mut frame = [7; 40];
        write_frame_header(&mut frame).unwrap();
        for air in [AirKind::Host, SLOTS] {
            let mut link = SplitLink::new(FakeLink::default(), FakeLink::hearing([vec![9; 64]]));
            link.start(1, 1, air);
            block_on(link.send(&frame));
            let mut packet = [0; 64];
            assert_eq!((block_on(link.receive(&mut packet)).0, packet), (64, [9; 64]));
            let expected = match air {
                AirKind::Host => (vec![], vec![frame.to_vec()]),
                AirKind::Slots { .. } => (vec![frame[FRAME_OFFSET..].to_vec()], vec![]),
            };
            assert_eq!((link.radio.sent, link.cable.sent), expected);
        }
    }

    /// Anyone can send by radio what only a host may say. A board whose air is a host ignores its radio.
    #[test]
    fn whatever_comes_by_radio_is_a_frame() {
        let mut command = [0; 8];
        let length = Packet::Service.encode(&mut command).unwrap();
        let forged = &command[..length];
        for (air, expected) in [(SLOTS, Packet::Frame(forged)), (AirKind::Host, Packet::Identify)] {
            let mut said = [0; 8];
            let length = Packet::Identify.encode(&mut said).unwrap();
            let cable = FakeLink::hearing([said[..length].to_vec()]);
            let mut link = SplitLink::new(FakeLink::hearing([forged.to_vec()]), cable);
            link.start(1, 1, air);
            let mut packet = [0; 64];
            let (length, _) = block_on(link.receive(&mut packet));
            let decoded =
                Packet::decode(&packet[..length]).or_else(|_| Packet::decode_service(&packet[..length]));
            assert_eq!(decoded, Ok(expected), "{air:?}");
        }
    }
}
