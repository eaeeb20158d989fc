//! A radio that listens while its board does something else.

use super::{AirKind, Link, copy};
use core::{cell::Cell, future::Future, pin::pin};
use embassy_futures::select::{Either, select};
use embassy_sync::{blocking_mutex::raw::NoopRawMutex, channel::Channel};
use embassy_time::{Duration, Instant};
use fabswarm_shared::packet::RadioState;
use heapless::Vec;

/// Packets that a radio sends without hearing one until it is set up again: some superframes.
const SILENT_SENDS: u32 = 32;

/// Packets that wait for the board.
const HEARD: usize = 4;

#[derive(Debug)]
struct RadioPacket<const MTU: usize> {
    bytes: Vec<u8, MTU>,
    arrived: Instant,
}

/// The queues between a radio and its board: packets of up to `MTU` bytes, of which `SENT` can wait to be sent.
///
/// Most radios lose what is arriving when they are told to stop. A board that waits for its radio and its cable at once stops both
/// whenever it sends something by the cable: so the radio gets a task of its own, [`keep_listening`], and the queue
/// is the board's link.
#[derive(Debug)]
pub struct RadioQueue<const MTU: usize, const SENT: usize> {
    heard: Channel<NoopRawMutex, RadioPacket<MTU>, HEARD>,
    /// Packets to be sent, and when.
    sent: Channel<NoopRawMutex, (Vec<u8, MTU>, Instant), SENT>,
    /// By how much a packet may be late for its slot.
    late: Cell<Option<Duration>>,
    /// Packets sent since one was heard.
    unheard: Cell<u32>,
    radio_state: Cell<Option<RadioState>>,
}

impl<const MTU: usize, const SENT: usize> RadioQueue<MTU, SENT> {
    /// Keeps what the radio hears until `event`.
    async fn hear_until<E>(&self, radio: &mut impl Link, event: impl Future<Output = E>) -> E {
        let mut event = pin!(event);
        let mut packet = [0; MTU];
        loop {
            match select(&mut event, radio.receive(&mut packet)).await {
                Either::First(outcome) => return outcome,
                Either::Second((length, arrived)) => {
                    self.unheard.set(0);
                    let bytes = Vec::from_slice(&packet[..length.min(MTU)]).unwrap_or_default();
                    if self.heard.try_send(RadioPacket { bytes, arrived }).is_err() {
                        warn!("the radio hears more than the board can take: a packet is dropped");
                    }
                }
            }
        }
    }
}

impl<const MTU: usize, const SENT: usize> Default for RadioQueue<MTU, SENT> {
    fn default() -> Self {
        Self {
            heard: Channel::new(),
            sent: Channel::new(),
            late: Cell::default(),
            unheard: Cell::default(),
            radio_state: Cell::default(),
        }
    }
}

/// Moves packets between a radio and its queue, forever. It stops listening only to send.
pub async fn keep_listening<R: Link, const MTU: usize, const SENT: usize>(
    radio: &mut R,
    queue: &RadioQueue<MTU, SENT>,
) -> ! {
    let (mut busy, mut restarts) = (0, 0);
    let mut is_late = false;
    loop {
        let (packet, at) = queue.hear_until(radio, queue.sent.receive()).await;
        // What has no time of its own goes with the packet before it.
        if at > Instant::MIN {
            // It would tell a wrong time, in the slot of another board.
            is_late = queue.late.get().is_some_and(|late| Instant::now() > at + late);
        }
        if is_late {
            warn!("a packet is late for its slot: it is dropped");
            continue;
        }
        let unheard = queue.unheard.get() + 1;
        queue.unheard.set(unheard % SILENT_SENDS);
        // Where the channel is busy the packet is lost, as any other.
        if !radio.try_send_at(&packet, at).await {
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

/// The board's end of the queues.
impl<const MTU: usize, const SENT: usize> Link for &RadioQueue<MTU, SENT> {
    fn start(&mut self, _: u16, _: u32, air: AirKind) {
        self.late.set(match air {
            AirKind::Slots { late } => Some(late),
            AirKind::Host => None,
        });
    }

    async fn send(&mut self, packet: &[u8]) {
        self.send_at(packet, Instant::MIN).await;
    }

    /// Returns at once: a slow radio takes seconds for what the board hands over.
    async fn send_at(&mut self, packet: &[u8], at: Instant) {
        let Ok(packet) = Vec::from_slice(packet) else { return };
        if self.sent.try_send((packet, at)).is_err() {
            warn!("the radio does not send as fast as it is told to: a packet is dropped");
        }
    }

    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
        let RadioPacket { bytes, arrived } = self.heard.receive().await;
        (copy(&bytes, packet), arrived)
    }

    fn radio_state(&self) -> Option<RadioState> {
        self.radio_state.get()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::{SplitLink, fake::FakeLink};
    use super::*;
    use core::future::pending;
    use embassy_futures::{block_on, select::select, yield_now};
    use embassy_time::Timer;
    use fabswarm_shared::packet::{FRAME_OFFSET, Packet};
    use std::vec::Vec;

    const SLOTS: AirKind = AirKind::Slots { late: Duration::from_millis(1) };

    async fn turns(count: u32) {
        for _ in 0..count {
            yield_now().await;
        }
    }

    /// A radio on which a packet takes a while to arrive, and is lost if the board stops listening meanwhile. Its channel may be busy, and
    /// it may have lost its settings: then it takes what is sent and hears nothing.
    #[derive(Default)]
    struct TestRadio {
        is_busy: bool,
        is_deaf: bool,
        heard: u8,
        attempts: u32,
        restarts: u32,
    }

    impl Link for TestRadio {
        async fn send(&mut self, packet: &[u8]) {
            self.try_send_at(packet, Instant::MIN).await;
        }

        async fn try_send_at(&mut self, _: &[u8], _: Instant) -> bool {
            self.attempts += 1;
            !self.is_busy
        }

        async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
            if self.is_deaf {
                pending::<()>().await;
            }
            turns(20).await;
            self.heard = self.heard.wrapping_add(1);
            packet[0] = self.heard;
            (1, Instant::from_ticks(self.heard.into()))
        }

        async fn restart(&mut self) {
            self.restarts += 1;
            self.is_deaf = false;
        }

        fn radio_state(&self) -> Option<RadioState> {
            Some(RadioState { lqi: Some(7), ..RadioState::default() })
        }
    }

    /// Sends telemetry while frames arrive, and returns what was heard and when.
    async fn hear_while_telling(
        link: &mut SplitLink<impl Link, FakeLink>,
        packets: u8,
    ) -> Vec<(u8, Instant)> {
        let mut heard = Vec::new();
        for _ in 0..1000 {
            let mut packet = [0; 16];
            if let Either::Second((_, arrived)) = select(turns(5), link.receive(&mut packet)).await {
                heard.push((packet[FRAME_OFFSET], arrived));
                if packet[FRAME_OFFSET] == packets {
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
        let mut bare = SplitLink::new(TestRadio::default(), FakeLink::default());
        bare.start(7, 1, SLOTS);
        assert_eq!(block_on(hear_while_telling(&mut bare, 10)), [], "the fault that this link is for");
        let queue = RadioQueue::<8, 2>::default();
        let mut link = SplitLink::new(&queue, FakeLink::default());
        link.start(7, 1, SLOTS);
        let mut radio = TestRadio::default();
        // The radio's task never ends.
        let Either::Second(heard) =
            block_on(select(keep_listening(&mut radio, &queue), hear_while_telling(&mut link, 10)));
        let expected = (1..=10).map(|packet| (packet, Instant::from_ticks(packet.into())));
        assert_eq!(heard, expected.collect::<Vec<_>>());
    }

    #[test]
    fn what_waits_is_sent_and_what_does_not_fit_is_dropped() {
        let mut radio = TestRadio::default();
        let queue = RadioQueue::<8, 2>::default();
        let mut link = &queue;
        // Two wait; the third finds no room, and the last is too long.
        for packet in [&[1; 8][..], &[2; 8], &[3; 8], &[4; 9]] {
            block_on(link.send(packet));
        }
        block_on(select(keep_listening(&mut radio, &queue), turns(50)));
        assert_eq!(radio.attempts, 2);
        // The board reads nothing meanwhile: the radio is not held up, and the oldest wait.
        block_on(select(keep_listening(&mut radio, &queue), turns(1000)));
        let mut packet = [0; 8];
        let (first, _) = block_on(link.receive(&mut packet));
        assert_eq!((first, packet[0]), (1, 1));
        assert!(radio.heard > HEARD as u8);
    }

    #[test]
    fn a_radio_that_hears_nobody_is_set_up_again() {
        let mut radio = TestRadio { is_deaf: true, ..TestRadio::default() };
        let queue = RadioQueue::<8, 2>::default();
        let mut link = &queue;
        for sent in 1..4 * SILENT_SENDS {
            block_on(link.send(&[1]));
            block_on(select(keep_listening(&mut radio, &queue), turns(50)));
            assert_eq!(radio.restarts, u32::from(sent >= SILENT_SENDS), "after {sent} packets");
            if sent == SILENT_SENDS {
                assert_eq!(link.radio_state().map(|state| state.restarts), Some(1));
            }
        }
    }

    #[test]
    fn a_packet_for_a_busy_channel_is_lost_and_counted() {
        for is_busy in [false, true] {
            let mut radio = TestRadio { is_busy, ..TestRadio::default() };
            let queue = RadioQueue::<8, 2>::default();
            let mut link = &queue;
            block_on(link.send(&[1]));
            block_on(select(keep_listening(&mut radio, &queue), turns(100)));
            let told = link.radio_state().unwrap();
            assert_eq!((radio.attempts, told.lqi, told.busy), (1, Some(7), is_busy.into()));
        }
    }

    /// What is behind a late packet belongs to it, up to the next one with a time.
    #[test]
    fn a_packet_that_is_late_for_its_slot_is_dropped() {
        let mut radio = TestRadio::default();
        let queue = RadioQueue::<8, 3>::default();
        let mut link = &queue;
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
        assert_eq!(radio.attempts, 1);
    }
}
