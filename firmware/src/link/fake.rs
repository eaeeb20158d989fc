//! A link for tests.

extern crate std;
use super::Link;
use core::future::pending;
use embassy_time::Instant;
use std::{collections::VecDeque, vec::Vec};

/// Keeps what is sent, and hears one packet after the other, a millisecond apart.
#[derive(Default)]
pub(crate) struct FakeLink {
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) heard: VecDeque<Vec<u8>>,
    /// Whether nobody takes what is sent.
    pub(crate) is_stuck: bool,
    pub(crate) received: u64,
}

impl FakeLink {
    pub(crate) fn hearing(heard: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self { heard: heard.into_iter().collect(), ..Self::default() }
    }
}

impl Link for FakeLink {
    async fn send(&mut self, packet: &[u8]) {
        if self.is_stuck {
            pending::<()>().await;
        }
        self.sent.push(packet.to_vec());
    }

    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
        let Some(heard) = self.heard.pop_front() else { pending().await };
        self.received += 1;
        packet[..heard.len()].copy_from_slice(&heard);
        (heard.len(), Instant::from_millis(self.received))
    }
}
