//! Frames over a radio, everything else over a cable.

use super::Link;
use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Instant, Timer};
use fabswarm_shared::packet::is_frame;

/// The radio hears nothing while the cable takes a packet: one that it does not take within this time is dropped.
const CABLE_TIMEOUT: Duration = Duration::from_millis(20);

/// The link of a board in the field: frames go over a radio, other packets over a cable that may be unplugged.
#[derive(Debug)]
pub struct SplitLink<R, C> {
    radio: R,
    cable: C,
}

impl<R, C> SplitLink<R, C> {
    /// Joins both links into one.
    pub const fn new(radio: R, cable: C) -> Self {
        Self { radio, cable }
    }
}

impl<R: Link, C: Link> Link for SplitLink<R, C> {
    fn start(&mut self, sender: u16, boot: u32) {
        self.radio.start(sender, boot);
    }

    async fn send(&mut self, packet: &[u8]) {
        if is_frame(packet) {
            self.radio.send(packet).await;
        } else {
            select(self.cable.send(packet), Timer::after(CABLE_TIMEOUT)).await;
        }
    }

    fn arrived(&self) -> Option<Instant> {
        self.radio.arrived()
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        // Only the radio uses the caller's buffer: packets from the host are short.
        let mut command = [0; 16];
        loop {
            match select(self.radio.receive(packet), self.cable.receive(&mut command)).await {
                Either::First(length) if is_frame(&packet[..length]) => return length,
                // Anyone can send by radio and only frames are sealed, so commands are accepted by cable only.
                Either::First(_) => {}
                Either::Second(length) => {
                    packet[..length].copy_from_slice(&command[..length]);
                    return length;
                }
            }
        }
    }
}
