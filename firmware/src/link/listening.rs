//! A radio that listens while its board does something else.

use super::{AirKind, Backoff, Link};
use core::{cell::Cell, future::Future, pin::pin};
use embassy_futures::select::{Either, select};
use embassy_sync::{blocking_mutex::raw::NoopRawMutex, channel::Channel};
use embassy_time::{Duration, Instant, Timer};
use fabswarm_shared::packet::RadioState;
use heapless::Vec;

/// Packets that a radio sends without hearing one until it is set up again: some superframes.
const SILENT_SENDS: u32 = 32;

/// Packets that wait for the board.
const HEARD: usize = 4;

#[derive(Debug)]
struct RadioPacket<const MTU: usize> {
    bytes: Vec<u8, MTU>,
    arrived: Option<Instant>,
}

/// The queues between a radio and its board: packets of up to `MTU` bytes, of which `SENT` can wait to be sent.
///
/// Most radios lose what is arriving when they are told to stop. A board that waits for its radio and its cable at once stops both
/// whenever it sends something by the cable: so the radio gets a task of its own, [`keep_listening`], and the board a
/// [`ListeningLink`].
#[derive(Debug)]
pub struct RadioQueue<const MTU: usize, const SENT: usize> {
    heard: Channel<NoopRawMutex, RadioPacket<MTU>, HEARD>,
    /// Packets to be sent, and when.
    sent: Channel<NoopRawMutex, (Vec<u8, MTU>, Instant), SENT>,
    /// The arguments of [`Link::start`].
    start: Cell<Option<(u16, u32, AirKind)>>,
    /// Packets sent since one was heard.
    unheard: Cell<u32>,
    radio_state: Cell<Option<RadioState>>,
}

impl<const MTU: usize, const SENT: usize> RadioQueue<MTU, SENT> {
    /// Creates an empty queue.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            heard: Channel::new(),
            sent: Channel::new(),
            start: Cell::new(None),
            unheard: Cell::new(0),
            radio_state: Cell::new(None),
        }
    }

    /// Keeps what the radio hears until `event`.
    async fn hear_until<E>(&self, radio: &mut impl Link, event: impl Future<Output = E>) -> E {
        let mut event = pin!(event);
        let mut packet = [0; MTU];
        loop {
            match select(&mut event, radio.receive(&mut packet)).await {
                Either::First(outcome) => return outcome,
                Either::Second(length) => {
                    self.unheard.set(0);
                    let bytes = Vec::from_slice(&packet[..length.min(MTU)]).unwrap_or_default();
                    if self.heard.try_send(RadioPacket { bytes, arrived: radio.arrived() }).is_err() {
                        warn!("the radio hears more than the board can take: a packet is dropped");
                    }
                }
            }
        }
    }
}

impl<const MTU: usize, const SENT: usize> Default for RadioQueue<MTU, SENT> {
    fn default() -> Self {
        Self::new()
    }
}

/// Moves packets between a radio and its queue, forever. It stops listening only to send, and looks at the channel before.
pub async fn keep_listening<R: Link, const MTU: usize, const SENT: usize>(
    radio: &mut R,
    queue: &RadioQueue<MTU, SENT>,
) -> ! {
    let mut backoff = Backoff::new();
    let (mut busy, mut restarts) = (0, 0);
    let mut is_late = false;
    loop {
        let (packet, at) = queue.hear_until(radio, queue.sent.receive()).await;
        if let Some((sender, boot, air)) = queue.start.take() {
            radio.start(sender, boot, air);
            backoff.start(sender, boot, air);
        }
        // What has no time of its own goes with the packet before it.
        if at > Instant::MIN {
            is_late = backoff.is_late(at);
        }
        if is_late {
            warn!("a packet is late for its slot: it is dropped");
            continue;
        }
        let unheard = queue.unheard.get() + 1;
        queue.unheard.set(unheard % SILENT_SENDS);
        let mut attempt = 0;
        while let Some(pause) = backoff.pause(attempt) {
            // A timer takes a while even for nothing, and in slots every microsecond tells the time.
            if pause > Duration::MIN {
                queue.hear_until(radio, Timer::after(pause)).await;
            }
            if radio.try_send_at(&packet, at).await {
                break;
            }
            // The packet is lost after the last attempt, as any other.
            attempt += 1;
            busy += 1;
        }
        if unheard == SILENT_SENDS {
            warn!("nobody was heard while {} packets were sent: the radio is set up again", unheard);
            radio.restart().await;
            restarts += 1;
        }
        queue.radio_state.set(radio.radio_state().map(|state| RadioState { busy, restarts, ..state }));
    }
}

/// The board's end of a [`RadioQueue`].
#[derive(Debug)]
pub struct ListeningLink<'a, const MTU: usize, const SENT: usize> {
    queue: &'a RadioQueue<MTU, SENT>,
    arrived: Option<Instant>,
}

impl<'a, const MTU: usize, const SENT: usize> ListeningLink<'a, MTU, SENT> {
    /// Creates a link to the radio behind `queue`.
    #[must_use]
    pub const fn new(queue: &'a RadioQueue<MTU, SENT>) -> Self {
        Self { queue, arrived: None }
    }
}

impl<const MTU: usize, const SENT: usize> Link for ListeningLink<'_, MTU, SENT> {
    fn start(&mut self, sender: u16, boot: u32, air: AirKind) {
        self.queue.start.set(Some((sender, boot, air)));
    }

    async fn send(&mut self, packet: &[u8]) {
        self.send_at(packet, Instant::MIN).await;
    }

    /// Returns at once: a slow radio takes seconds for what the board hands over.
    async fn send_at(&mut self, packet: &[u8], at: Instant) {
        let Ok(packet) = Vec::from_slice(packet) else { return };
        if self.queue.sent.try_send((packet, at)).is_err() {
            warn!("the radio does not send as fast as it is told to: a packet is dropped");
        }
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        let RadioPacket { bytes, arrived } = self.queue.heard.receive().await;
        self.arrived = arrived;
        let length = bytes.len().min(packet.len());
        packet[..length].copy_from_slice(&bytes[..length]);
        length
    }

    fn arrived(&self) -> Option<Instant> {
        self.arrived
    }

    fn radio_state(&self) -> Option<RadioState> {
        self.queue.radio_state.get()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::SplitLink;
    use super::*;
    use embassy_futures::{block_on, select::select, yield_now};
    use fabswarm_shared::packet::{FRAME_OFFSET, Packet};
    use std::vec::Vec;

    const SLOTS: AirKind = AirKind::Slots { late: Duration::from_millis(1) };

    /// A radio on which a packet takes a while to arrive, and is lost if the board stops listening meanwhile.
    struct SlowRadio<'a> {
        heard: u8,
        sent: &'a Cell<u32>,
        started: &'a Cell<Option<u16>>,
    }

    impl Link for SlowRadio<'_> {
        fn start(&mut self, sender: u16, _: u32, _: AirKind) {
            self.started.set(Some(sender));
        }

        async fn send(&mut self, _: &[u8]) {
            self.sent.set(self.sent.get() + 1);
        }

        async fn receive(&mut self, packet: &mut [u8]) -> usize {
            for _ in 0..20 {
                yield_now().await;
            }
            self.heard += 1;
            packet[0] = self.heard;
            1
        }

        fn arrived(&self) -> Option<Instant> {
            Some(Instant::from_ticks(self.heard.into()))
        }
    }

    /// A cable that takes everything and brings nothing.
    struct SilentLink;

    impl Link for SilentLink {
        async fn send(&mut self, _: &[u8]) {}

        async fn receive(&mut self, _: &mut [u8]) -> usize {
            core::future::pending().await
        }
    }

    /// Sends telemetry while frames arrive, and returns what was heard.
    async fn hear_while_telling(link: &mut SplitLink<impl Link, SilentLink, 16>, packets: usize) -> Vec<u8> {
        let mut heard = Vec::new();
        for _ in 0..1000 {
            let pause = async {
                for _ in 0..5 {
                    yield_now().await;
                }
            };
            let mut packet = [0; 16];
            if let Either::Second(_) = select(pause, link.receive(&mut packet)).await {
                heard.push(packet[FRAME_OFFSET]);
                if heard.len() == packets {
                    break;
                }
            }
            let mut mark = [0; 16];
            let length = Packet::Mark { number: 1 }.encode(&mut mark).unwrap();
            link.send(&mark[..length]).await;
        }
        heard
    }

    /// Regression: whatever was sent by the cable lost what was arriving by radio.
    #[test]
    fn telemetry_loses_no_frame() {
        let (sent, started) = (Cell::new(0), Cell::new(None));
        let radio = || SlowRadio { heard: 0, sent: &sent, started: &started };
        let mut bare = SplitLink::new(radio(), SilentLink);
        bare.start(7, 1, SLOTS);
        assert_eq!(block_on(hear_while_telling(&mut bare, 10)), [], "the fault that this link is for");
        let queue = RadioQueue::<8, 2>::new();
        let mut link = SplitLink::new(ListeningLink::new(&queue), SilentLink);
        link.start(7, 1, SLOTS);
        let mut radio = radio();
        // The radio's task never ends.
        let Either::Second(heard) =
            block_on(select(keep_listening(&mut radio, &queue), hear_while_telling(&mut link, 10)));
        assert!(heard.iter().copied().eq(1..=10), "{heard:?}");
        assert_eq!(link.arrived(), Some(Instant::from_ticks(10)));
    }

    #[test]
    fn what_waits_is_sent_and_what_does_not_fit_is_dropped() {
        let (sent, started) = (Cell::new(0), Cell::new(None));
        let mut radio = SlowRadio { heard: 0, sent: &sent, started: &started };
        let queue = RadioQueue::<8, 2>::new();
        let mut link = ListeningLink::new(&queue);
        link.start(7, 1, SLOTS);
        // Two wait; the third finds no room, and the last is too long.
        for packet in [&[1; 8][..], &[2; 8], &[3; 8], &[4; 9]] {
            block_on(link.send(packet));
        }
        block_on(select(keep_listening(&mut radio, &queue), async {
            for _ in 0..50 {
                yield_now().await;
            }
        }));
        assert_eq!((sent.get(), started.get()), (2, Some(7)));
        // The board reads nothing meanwhile: the radio is not held up, and the oldest wait.
        block_on(select(keep_listening(&mut radio, &queue), async {
            for _ in 0..1000 {
                yield_now().await;
            }
        }));
        let mut packet = [0; 8];
        let first = block_on(link.receive(&mut packet));
        assert_eq!((first, packet[0]), (1, 1));
        assert!(radio.heard > HEARD as u8);
    }

    /// A radio that has lost its settings: it takes what is sent and hears nothing until it is set up again.
    struct DeafRadio<'a> {
        is_deaf: bool,
        restarts: &'a Cell<u32>,
    }

    impl Link for DeafRadio<'_> {
        async fn send(&mut self, _: &[u8]) {}

        async fn receive(&mut self, _: &mut [u8]) -> usize {
            if self.is_deaf {
                core::future::pending::<()>().await;
            }
            yield_now().await;
            1
        }

        async fn restart(&mut self) {
            self.restarts.set(self.restarts.get() + 1);
            self.is_deaf = false;
        }

        fn radio_state(&self) -> Option<RadioState> {
            Some(RadioState::default())
        }
    }

    #[test]
    fn a_radio_that_hears_nobody_is_set_up_again() {
        let restarts = Cell::new(0);
        let mut radio = DeafRadio { is_deaf: true, restarts: &restarts };
        let queue = RadioQueue::<8, 2>::new();
        let mut link = ListeningLink::new(&queue);
        link.start(7, 1, SLOTS);
        let sending = async {
            for sent in 1..4 * SILENT_SENDS {
                link.send(&[1]).await;
                for _ in 0..5 {
                    yield_now().await;
                }
                assert_eq!(restarts.get(), u32::from(sent >= SILENT_SENDS), "after {sent} packets");
            }
        };
        block_on(select(keep_listening(&mut radio, &queue), sending));
        assert_eq!(link.radio_state().map(|state| state.restarts), Some(1));
    }

    /// A channel that is busy for the first `busy` attempts.
    struct BusyRadio<'a> {
        busy: u32,
        looks: &'a Cell<u32>,
        heard: u8,
    }

    impl Link for BusyRadio<'_> {
        async fn send(&mut self, packet: &[u8]) {
            self.try_send(packet).await;
        }

        async fn try_send(&mut self, _: &[u8]) -> bool {
            self.looks.set(self.looks.get() + 1);
            self.looks.get() > self.busy
        }

        async fn receive(&mut self, packet: &mut [u8]) -> usize {
            // One packet per pause.
            if u32::from(self.heard) > self.looks.get() {
                core::future::pending::<()>().await;
            }
            self.heard += 1;
            packet[0] = self.heard;
            1
        }

        fn radio_state(&self) -> Option<RadioState> {
            Some(RadioState { lqi: Some(7), ..RadioState::default() })
        }
    }

    /// A busy channel is looked at again and again, and what makes it busy is heard meanwhile; in a slot there is one look.
    #[test]
    fn a_busy_channel_is_waited_for_and_heard() {
        for (air, busy, expected) in [
            (AirKind::Shared, 0, 1),
            (AirKind::Shared, 3, 4),
            (AirKind::Shared, 99, 5),
            (SLOTS, 0, 1),
            (SLOTS, 99, 1),
        ] {
            let looks = Cell::new(0);
            let mut radio = BusyRadio { busy, looks: &looks, heard: 0 };
            let queue = RadioQueue::<8, 2>::new();
            let mut link = ListeningLink::new(&queue);
            link.start(7, 1, air);
            block_on(link.send(&[1]));
            let over = async {
                while looks.get() < expected {
                    Timer::after(Duration::from_millis(1)).await;
                }
                // Longer than any pause: there is no further attempt.
                Timer::after(Duration::from_millis(100)).await;
            };
            block_on(select(keep_listening(&mut radio, &queue), over));
            assert_eq!(looks.get(), expected, "{air:?}, busy {busy} times");
            let told = link.radio_state().unwrap();
            assert_eq!((told.lqi, told.busy), (Some(7), busy.min(expected)), "{air:?}, busy {busy} times");
            // A packet in every pause, and one afterwards; in a slot only then.
            let pauses = if air == AirKind::Shared { expected } else { 1 };
            assert_eq!(u32::from(radio.heard), pauses + 1, "{air:?}, busy {busy} times");
        }
    }

    /// What is behind a late packet belongs to it, up to the next one with a time.
    #[test]
    fn a_packet_that_is_late_for_its_slot_is_dropped() {
        let looks = Cell::new(0);
        let mut radio = BusyRadio { busy: 0, looks: &looks, heard: 0 };
        let queue = RadioQueue::<8, 3>::new();
        let mut link = ListeningLink::new(&queue);
        link.start(7, 1, SLOTS);
        let sending = async {
            Timer::after(Duration::from_millis(20)).await;
            let now = Instant::now();
            link.send_at(&[1], now - Duration::from_millis(10)).await;
            link.send(&[2]).await;
            link.send_at(&[3], now + Duration::from_millis(20)).await;
            Timer::after(Duration::from_millis(60)).await;
        };
        block_on(select(keep_listening(&mut radio, &queue), sending));
        assert_eq!(looks.get(), 1);
    }
}
