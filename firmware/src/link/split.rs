//! Frames over a radio, everything else over a cable.

use super::{Link, patience::Patience};
use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Instant};
use fabswarm_shared::packet::{FRAME_OFFSET, is_frame, write_frame_header};

/// The radio hears nothing while the cable takes a packet: one that it does not take within this time is dropped.
const CABLE_TIMEOUT: Duration = Duration::from_millis(20);

/// The link of a board in the field: frames go over a radio, without the byte that tells them from other packets, and those over
/// a cable that may be unplugged.
#[derive(Debug)]
pub struct SplitLink<R, C> {
    radio: R,
    cable: C,
    patience: Patience,
}

impl<R, C> SplitLink<R, C> {
    /// Joins both links into one.
    pub const fn new(radio: R, cable: C) -> Self {
        Self { radio, cable, patience: Patience::new() }
    }
}

impl<R: Link, C: Link> Link for SplitLink<R, C> {
    fn start(&mut self, sender: u16, boot: u32, has_slots: bool) {
        self.radio.start(sender, boot, has_slots);
    }

    async fn send(&mut self, packet: &[u8]) {
        match packet.get(FRAME_OFFSET..) {
            Some(frame) if is_frame(packet) => self.radio.send(frame).await,
            _ => {
                self.patience.send(&mut self.cable, packet, CABLE_TIMEOUT).await;
            }
        }
    }

    fn arrived(&self) -> Option<Instant> {
        self.radio.arrived()
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        // Only the radio uses the caller's buffer: packets from the host are short.
        let mut command = [0; 16];
        loop {
            let Some(frame) = packet.get_mut(FRAME_OFFSET..) else { return 0 };
            match select(self.radio.receive(frame), self.cable.receive(&mut command)).await {
                // Anyone can send by radio and only frames are sealed: whatever comes from there is taken for a frame.
                Either::First(length) if length > 0 && write_frame_header(packet).is_ok() => {
                    return FRAME_OFFSET + length;
                }
                Either::First(_) => {}
                Either::Second(length) => {
                    packet[..length].copy_from_slice(&command[..length]);
                    return length;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::{cell::Cell, future::pending};
    use embassy_futures::block_on;

    /// A cable whose host reads or does not; it counts what it took.
    struct Cable<'a> {
        is_read: &'a Cell<bool>,
        taken: &'a Cell<u32>,
    }

    impl Link for Cable<'_> {
        async fn send(&mut self, _: &[u8]) {
            if !self.is_read.get() {
                pending::<()>().await;
            }
            self.taken.set(self.taken.get() + 1);
        }

        async fn receive(&mut self, _: &mut [u8]) -> usize {
            pending().await
        }
    }

    /// Regression: every packet that was not read kept the radio deaf for 20 ms.
    #[test]
    fn a_host_that_does_not_read_costs_the_radio_one_timeout() {
        let (is_read, taken) = (Cell::new(false), Cell::new(0));
        let radio = Cable { is_read: &Cell::new(true), taken: &Cell::new(0) };
        let mut link = SplitLink::new(radio, Cable { is_read: &is_read, taken: &taken });
        let begun = Instant::now();
        for _ in 0..100 {
            block_on(link.send(&[0]));
        }
        assert!(begun.elapsed() < 50 * CABLE_TIMEOUT, "{}", begun.elapsed().as_millis());
        assert_eq!(taken.get(), 0);
        // Whoever reads again gets everything from then on.
        is_read.set(true);
        for _ in 0..10 {
            block_on(link.send(&[0]));
        }
        assert_eq!(taken.get(), 10);
        assert!(begun.elapsed() < 50 * CABLE_TIMEOUT, "{}", begun.elapsed().as_millis());
    }
}
