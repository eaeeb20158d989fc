//! Queues between link and agent: a few packets each way, so that neither waits for the other.
//!
//! Both are bounded. A full incoming queue stops receiving from the link but never sending, so the agent can always send
//! its packets and return to its incoming queue: no deadlock.

use super::{Link, send_backoff::SendBackoff};
use crate::PACKET;
use core::cell::Cell;
use embassy_futures::select::{Either, select};
use embassy_sync::{
    blocking_mutex::raw::NoopRawMutex,
    zerocopy_channel::{Channel, Receiver, Sender},
};
use embassy_time::{Duration, Instant, Timer};
use fabswarm_shared::packet::RadioState;

const WAITING: usize = 3;
/// A packet that the link does not accept within this time is dropped, like one lost on the air. Nothing is received meanwhile.
const SEND_TIMEOUT: Duration = Duration::from_millis(250);
/// How long before its time a packet is passed to the link: alarms and tasks may be late.
const LEAD: Duration = Duration::from_micros(200);

#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketBuffer {
    bytes: [u8; PACKET],
    length: usize,
    /// When an incoming packet arrived, or when an outgoing one is to be sent.
    at: Instant,
}

impl PacketBuffer {
    const EMPTY: Self = Self { bytes: [0; PACKET], length: 0, at: Instant::MIN };

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Buffers for the packets of one direction.
#[derive(Debug)]
pub(crate) struct PacketQueue([PacketBuffer; WAITING]);

impl PacketQueue {
    pub(crate) const fn new() -> Self {
        Self([PacketBuffer::EMPTY; WAITING])
    }

    /// The memory of one packet, while no channel uses it.
    pub(crate) const fn scratch(&mut self) -> &mut [u8] {
        &mut self.0[0].bytes
    }

    pub(crate) fn channel(&mut self) -> Channel<'_, NoopRawMutex, PacketBuffer> {
        Channel::new(&mut self.0)
    }
}

/// The agent's end of the incoming queue.
pub(crate) struct PacketReceiver<'a> {
    pub(crate) queue: Receiver<'a, NoopRawMutex, PacketBuffer>,
    /// The last report of the link's radio.
    pub(crate) radio: &'a Cell<Option<RadioState>>,
}

impl PacketReceiver<'_> {
    /// Waits for a packet and returns it with the time of its arrival. It stays queued until [`PacketReceiver::done`].
    pub(crate) async fn packet(&mut self) -> (&[u8], Instant) {
        let mail = self.queue.receive().await;
        (mail.bytes(), mail.at)
    }

    pub(crate) fn done(&mut self) {
        self.queue.receive_done();
    }
}

/// The agent's end of the outgoing queue.
pub(crate) struct PacketSender<'a>(pub(crate) Sender<'a, NoopRawMutex, PacketBuffer>);

impl PacketSender<'_> {
    /// Waits for room and sends the packet that `write` puts there. `write` returns its length, or `None` to send nothing.
    /// Returns whether a packet was sent.
    pub(crate) async fn post(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        self.post_at(Instant::MIN, write).await
    }

    /// Like [`PacketSender::post`], for a packet that is sent at `at`, or now if that has passed.
    pub(crate) async fn post_at(
        &mut self,
        at: Instant,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> bool {
        let mail = self.0.send().await;
        let written = write(&mut mail.bytes);
        if let Some(length) = written {
            (mail.length, mail.at) = (length.min(PACKET), at);
            self.0.send_done();
        }
        written.is_some()
    }
}

/// Moves packets between the link and the queues, forever.
pub(crate) async fn serve<L: Link>(
    link: &mut L,
    mut incoming: Sender<'_, NoopRawMutex, PacketBuffer>,
    mut outgoing: Receiver<'_, NoopRawMutex, PacketBuffer>,
    radio: &Cell<Option<RadioState>>,
) -> ! {
    let mut backoff = SendBackoff::default();
    loop {
        let receive = async {
            let mail = incoming.send().await;
            (mail.length, mail.at) = link.receive(&mut mail.bytes).await;
        };
        let due = async {
            let mail = outgoing.receive().await;
            if let Some(at) = mail.at.checked_sub(LEAD) {
                Timer::at(at).await;
            }
            mail
        };
        match select(due, receive).await {
            Either::First(mail) => {
                if backoff.send(link, mail.bytes(), mail.at, SEND_TIMEOUT).await {
                    warn!("the link does not accept packets: they are dropped");
                }
                outgoing.receive_done();
            }
            Either::Second(()) => incoming.send_done(),
        }
        radio.set(link.radio_state());
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::fake::FakeLink;
    use super::*;
    use embassy_futures::{block_on, select::select3};
    use std::{vec, vec::Vec};

    /// Regression: every packet that was not read kept the board deaf for a second.
    #[test]
    fn a_host_that_does_not_read_is_heard() {
        let (mut incoming, mut outgoing) = (PacketQueue::new(), PacketQueue::new());
        let (mut incoming, mut outgoing) = (incoming.channel(), outgoing.channel());
        let (to_agent, receiver) = incoming.split();
        let (sender, from_agent) = outgoing.split();
        let radio = Cell::new(None);
        let (mut receiver, mut sender) =
            (PacketReceiver { queue: receiver, radio: &radio }, PacketSender(sender));
        let mut link = FakeLink { is_stuck: true, ..FakeLink::hearing((1..=100).map(|byte| vec![byte])) };
        let mut heard = Vec::new();
        let send = async {
            loop {
                sender.post(|out| out.first_mut().map(|byte| *byte = 0).map(|()| 1)).await;
            }
        };
        let hear = async {
            while heard.len() < 100 {
                heard.push(receiver.packet().await.0[0]);
                receiver.done();
            }
        };
        let begun = embassy_time::Instant::now();
        block_on(select3(serve(&mut link, to_agent, from_agent, &radio), send, hear));
        assert!(heard.iter().copied().eq(1..=100));
        // One timeout, not one per packet.
        assert!(begun.elapsed() < 20 * SEND_TIMEOUT);
    }
}
