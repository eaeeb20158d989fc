//! Frames by radio, everything else by cable.

use super::Link;
use embassy_futures::select::{Either, select};
use fabswarm_shared::packet::is_frame;

/// A board in the field: its frames go through the air, and the host listens on a cable or not at all.
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
    async fn send(&mut self, packet: &[u8]) {
        if is_frame(packet) {
            self.radio.send(packet).await;
        } else {
            self.cable.send(packet).await;
        }
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        // Only the radio's receiver gets the caller's buffer: what the host says is short.
        let mut command = [0; 16];
        loop {
            match select(self.radio.receive(packet), self.cable.receive(&mut command)).await {
                Either::First(length) if is_frame(&packet[..length]) => return length,
                // Anybody can send a packet by radio, and only frames are sealed: commands come by cable.
                Either::First(_) => {}
                Either::Second(length) => {
                    packet[..length].copy_from_slice(&command[..length]);
                    return length;
                }
            }
        }
    }
}
