//! Marks for a logic analyser: on a pin each, when slots begin, packets go and come, and rounds end. A board inverts the pin of each
//! [`Mark`] that it is told.

use crate::link::{AirKind, Link};
use embassy_time::{Instant, Timer};
use fabswarm_shared::packet::RadioState;

/// An event with a pin of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The board's slot begins, by its own clock.
    Slot,
    /// The link begins to send a packet, and is done with it.
    Send,
    /// A packet has arrived.
    Receive,
    /// The agent begins to end its round, and has ended it.
    RoundEnd,
}

/// A link whose packets are marked.
#[allow(missing_debug_implementations, reason = "pins have nothing to show")]
pub struct MarkedLink<'a, L> {
    link: &'a mut L,
    marks: Option<&'a dyn Fn(Mark)>,
}

impl<'a, L> MarkedLink<'a, L> {
    /// Marks the packets of `link`, if there are pins.
    pub const fn new(link: &'a mut L, marks: Option<&'a dyn Fn(Mark)>) -> Self {
        Self { link, marks }
    }

    fn mark(&self, mark: Mark) {
        if let Some(marks) = self.marks {
            marks(mark);
        }
    }

    fn mark_slot(&self, at: Instant) {
        if at > Instant::MIN {
            self.mark(Mark::Slot);
        }
    }
}

impl<L: Link> Link for MarkedLink<'_, L> {
    fn start(&mut self, sender: u16, boot: u32, air: AirKind) {
        self.link.start(sender, boot, air);
    }

    async fn send(&mut self, packet: &[u8]) {
        self.mark(Mark::Send);
        self.link.send(packet).await;
        self.mark(Mark::Send);
    }

    async fn send_at(&mut self, packet: &[u8], at: Instant) {
        if at > Instant::MIN {
            Timer::at(at).await;
        }
        self.mark_slot(at);
        self.send(packet).await;
    }

    async fn try_send_at(&mut self, packet: &[u8], at: Instant) -> bool {
        while Instant::now() < at {}
        self.mark_slot(at);
        self.mark(Mark::Send);
        let is_sent = self.link.try_send_at(packet, Instant::MIN).await;
        self.mark(Mark::Send);
        is_sent
    }

    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
        let received = self.link.receive(packet).await;
        self.mark(Mark::Receive);
        received
    }

    async fn restart(&mut self) {
        self.link.restart().await;
    }

    fn radio_state(&self) -> Option<RadioState> {
        self.link.radio_state()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::link::fake::FakeLink;
    use core::cell::RefCell;
    use embassy_futures::block_on;
    use std::{vec, vec::Vec};

    #[test]
    fn packets_are_marked_and_slots_where_they_begin_one() {
        let (seen, slot_at) = (RefCell::new(Vec::new()), Instant::from_ticks(1));
        let marks = |mark| seen.borrow_mut().push(mark);
        let mut air = FakeLink::hearing([vec![1]]);
        let mut link = MarkedLink::new(&mut air, Some(&marks));
        block_on(async {
            link.send_at(&[1], Instant::MIN).await;
            link.send_at(&[1], slot_at).await;
            assert_eq!(link.receive(&mut [0]).await.0, 1);
            assert!(link.try_send_at(&[1], Instant::MIN).await);
            assert!(link.try_send_at(&[1], slot_at).await);
        });
        let sent = [Mark::Send, Mark::Send];
        let in_slot = [Mark::Slot, Mark::Send, Mark::Send];
        assert_eq!(*seen.borrow(), [&sent[..], &in_slot, &[Mark::Receive], &sent, &in_slot].concat());
    }
}
