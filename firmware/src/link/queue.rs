//! Queues between link and agent: a few packets each way, so that neither waits for the other.
//!
//! Both are bounded. A full incoming queue stops receiving from the link but never sending, so the agent can always send
//! its packets and return to its incoming queue: no deadlock.

use super::Link;
use embassy_futures::select::{Either, select};
use embassy_sync::{
    blocking_mutex::raw::NoopRawMutex,
    zerocopy_channel::{Channel, Receiver, Sender},
};
use embassy_time::{Duration, Timer};

/// Packets per queue.
const WAITING: usize = 3;
/// A packet that the link does not accept within this time is dropped, like one lost on the air.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// Room for one packet.
#[derive(Clone, Copy)]
pub(crate) struct PacketBuffer<const PACKET: usize> {
    bytes: [u8; PACKET],
    length: usize,
}

impl<const PACKET: usize> PacketBuffer<PACKET> {
    const EMPTY: Self = Self { bytes: [0; PACKET], length: 0 };

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Buffers for the packets of one direction.
pub(crate) struct PacketQueue<const PACKET: usize>([PacketBuffer<PACKET>; WAITING]);

impl<const PACKET: usize> PacketQueue<PACKET> {
    pub(crate) const fn new() -> Self {
        Self([PacketBuffer::EMPTY; WAITING])
    }

    pub(crate) fn channel(&mut self) -> Channel<'_, NoopRawMutex, PacketBuffer<PACKET>> {
        Channel::new(&mut self.0)
    }
}

/// The agent's end of the incoming queue.
pub(crate) struct PacketReceiver<'a, const PACKET: usize>(Receiver<'a, NoopRawMutex, PacketBuffer<PACKET>>);

impl<'a, const PACKET: usize> PacketReceiver<'a, PACKET> {
    pub(crate) fn new(receiver: Receiver<'a, NoopRawMutex, PacketBuffer<PACKET>>) -> Self {
        Self(receiver)
    }

    /// Waits for a packet, which stays queued until [`PacketReceiver::done`].
    pub(crate) async fn packet(&mut self) -> &[u8] {
        self.0.receive().await.bytes()
    }

    pub(crate) fn done(&mut self) {
        self.0.receive_done();
    }
}

/// The agent's end of the outgoing queue.
pub(crate) struct PacketSender<'a, const PACKET: usize>(Sender<'a, NoopRawMutex, PacketBuffer<PACKET>>);

impl<'a, const PACKET: usize> PacketSender<'a, PACKET> {
    pub(crate) fn new(sender: Sender<'a, NoopRawMutex, PacketBuffer<PACKET>>) -> Self {
        Self(sender)
    }

    /// Waits for room and sends the packet that `write` puts there. `write` returns its length, or `None` to send nothing.
    /// Returns whether a packet was sent.
    pub(crate) async fn post(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        let mail = self.0.send().await;
        let written = write(&mut mail.bytes);
        if let Some(length) = written {
            mail.length = length.min(PACKET);
            self.0.send_done();
        }
        written.is_some()
    }
}

/// Moves packets between the link and the queues, forever.
pub(crate) async fn serve<L: Link, const PACKET: usize>(
    link: &mut L,
    mut incoming: Sender<'_, NoopRawMutex, PacketBuffer<PACKET>>,
    mut outgoing: Receiver<'_, NoopRawMutex, PacketBuffer<PACKET>>,
) -> ! {
    loop {
        let receive = async {
            let mail = incoming.send().await;
            mail.length = link.receive(&mut mail.bytes).await;
        };
        match select(outgoing.receive(), receive).await {
            Either::First(mail) => {
                // Most links accept a packet at once: the clock is read only if one does not.
                let patience = async { Timer::after(SEND_TIMEOUT).await };
                if let Either::Second(()) = select(link.send(mail.bytes()), patience).await {
                    warn!("the link did not accept a packet in time: dropped");
                }
                outgoing.receive_done();
            }
            Either::Second(()) => incoming.send_done(),
        }
    }
}
