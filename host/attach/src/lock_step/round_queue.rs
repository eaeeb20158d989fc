//! The rounds that a shadow has gone through and its board has yet to.

use fabswarm_shared::packet::{Packet, RoundOver};
use fabswarm_sim::swarm::ShadowRound;
use std::collections::VecDeque;

/// Bytes of a packet in a receiver besides its frame: headers, checksum, padding.
const PACKET_BYTES: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameSource {
    pub(crate) board: usize,
    /// The air's round, by that board's count.
    pub(crate) air_round: u32,
}

/// The state of a shadow at the end of a round.
#[derive(Debug)]
pub(crate) struct ShadowRoundEnd {
    pub(crate) slot: u32,
    pub(crate) shadow: ShadowRound,
}

#[derive(Debug, Default)]
struct PendingRound {
    sent: Vec<Vec<u8>>,
    received: Vec<Vec<u8>>,
    /// The boards that sent them; other senders are left out.
    sources: Vec<FrameSource>,
    /// `None` while the shadow is in the round.
    end: Option<ShadowRoundEnd>,
}

impl PendingRound {
    const fn is_sent(&self) -> bool {
        self.end.is_some() || !self.sent.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct RoundQueue {
    /// The air's round that the board is in.
    pub(crate) round: u32,
    /// From the board's round to the shadow's.
    rounds: VecDeque<PendingRound>,
    /// How many of them the board was asked to go through.
    granted: usize,
    /// The round (an index into `rounds`) and the packet of it to send next.
    next: (usize, usize),
    marks: u32,
    /// Whether the last mark is unanswered.
    is_held: bool,
    /// Bytes that may be sent before the board must answer a mark. While it is 0 every packet is followed by one.
    pub(crate) window: usize,
}

impl RoundQueue {
    /// A queue for a board that starts in `round`, as its shadow does.
    pub(crate) fn new(round: u32) -> Self {
        let rounds = [PendingRound::default()].into();
        Self { round, rounds, granted: 0, next: (0, 0), marks: 0, is_held: false, window: 0 }
    }

    pub(crate) fn record_sent(&mut self, frame: &[u8]) {
        if let Some(round) = self.rounds.back_mut() {
            round.sent.push(frame.to_vec());
        }
    }

    /// Records a frame that the shadow received; `source` is `None` unless a board sent it.
    pub(crate) fn record_received(&mut self, source: Option<FrameSource>, frame: &[u8]) {
        if let Some(round) = self.rounds.back_mut() {
            round.received.push(frame.to_vec());
            round.sources.extend(source);
        }
    }

    pub(crate) fn record_end(&mut self, end: ShadowRoundEnd) {
        if let Some(round) = self.rounds.back_mut() {
            round.end = Some(end);
        }
        self.rounds.push_back(PendingRound::default());
    }

    pub(crate) fn shadow_round(&self) -> u32 {
        self.round + self.rounds_behind() as u32
    }

    /// The last round in which the shadow sent its frames: its present one, unless it is frozen before it sent any.
    pub(crate) fn last_sent_round(&self) -> u32 {
        let is_unsent = !self.rounds.back().is_some_and(PendingRound::is_sent);
        self.shadow_round().saturating_sub(is_unsent.into())
    }

    pub(crate) fn rounds_behind(&self) -> usize {
        self.rounds.len() - 1
    }

    pub(crate) const fn is_busy(&self) -> bool {
        self.granted > 0
    }

    /// The frames that the shadow sent in the board's round, once it has.
    pub(crate) fn expected_frames(&self) -> Option<&[Vec<u8>]> {
        self.rounds.front().filter(|round| round.is_sent()).map(|round| &*round.sent)
    }

    /// How many rounds the board could go through now: those that the shadow ended by slot `last` and whose frames were all sent by
    /// the boards they came from.
    pub(crate) fn ready(&self, last: u32, has_sent: impl Fn(FrameSource) -> bool) -> usize {
        let is_ready = |round: &&PendingRound| {
            round.end.as_ref().is_some_and(|end| end.slot <= last)
                && round.sources.iter().all(|&source| has_sent(source))
        };
        self.rounds.iter().take_while(is_ready).count()
    }

    /// Grants the board its next `rounds` rounds. It must not be busy.
    pub(crate) fn grant(&mut self, rounds: usize) {
        self.granted = rounds;
        self.next = (0, 0);
    }

    /// Pushes as many packets of the granted rounds as the board's receiver can buffer.
    pub(crate) fn send(&mut self, mut push: impl FnMut(&Packet)) {
        let (mut room, mut is_some_sent) = (self.window, false);
        while !self.is_held && self.next.0 < self.granted {
            let (round, packet) = self.next;
            let frame = self.rounds[round].received.get(packet);
            let bytes = PACKET_BYTES + frame.map_or(0, Vec::len);
            if bytes > room && is_some_sent {
                self.marks += 1;
                self.is_held = true;
                push(&Packet::Mark { number: self.marks });
            } else if let Some(frame) = frame {
                let (air_round, number) = ((self.round + round as u32) as u8, packet as u16);
                push(&Packet::Relayed { air_round, number, frame });
                self.next = (round, packet + 1);
            } else {
                push(&self.round_over(round));
                self.next = (round + 1, 0);
            }
            room = room.saturating_sub(bytes);
            is_some_sent = true;
        }
    }

    fn round_over(&self, round: usize) -> Packet<'static> {
        let PendingRound { received, end, .. } = &self.rounds[round];
        let digest = end.as_ref().map(|end| end.shadow.digest);
        let (air_round, frames) = (self.round + round as u32, received.len() as u16);
        Packet::RoundOver(RoundOver { air_round, frames, digest })
    }

    /// The packet that the board has yet to answer, to be sent again.
    pub(crate) fn unanswered(&self) -> Option<Packet<'static>> {
        if self.is_held {
            return Some(Packet::Mark { number: self.marks });
        }
        self.is_busy().then(|| self.round_over(0))
    }

    /// Goes back to the frame of a granted round from which on the board lacks all.
    pub(crate) fn go_back(&mut self, air_round: u32, from: u16) {
        let round = air_round.wrapping_sub(self.round) as usize;
        if round < self.granted {
            (self.next, self.is_held) = ((round, from.into()), false);
        }
    }

    /// How many granted rounds the board has ended when it is in `air_round`; `None` if it cannot be there.
    pub(crate) fn ended_before(&self, air_round: u32) -> Option<usize> {
        let ended = air_round.wrapping_sub(self.round) as usize;
        (1..=self.granted).contains(&ended).then_some(ended)
    }

    /// Withdraws the granted rounds.
    pub(crate) const fn stop(&mut self) {
        self.granted = 0;
        self.is_held = false;
    }

    /// Notes that the board has processed everything before a mark.
    pub(crate) fn pass_mark(&mut self, mark: u32) {
        self.is_held &= mark != self.marks;
    }

    /// Notes that the board has ended its round, and returns the end of its shadow's. `None` if no round was granted.
    pub(crate) fn finish_round(&mut self) -> Option<ShadowRoundEnd> {
        self.granted = self.granted.checked_sub(1)?;
        self.next.0 = self.next.0.saturating_sub(1);
        self.round += 1;
        self.rounds.pop_front()?.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: usize = 8 * 1024;

    fn queue_in(round: u32) -> RoundQueue {
        let mut queue = RoundQueue::new(round);
        queue.window = WINDOW;
        queue
    }

    fn end(slot: u32) -> ShadowRoundEnd {
        ShadowRoundEnd { slot, shadow: ShadowRound::default() }
    }

    /// The packets that `queue` sends now: the length of a frame, `'o'` for the end of a round, `'m'` for a mark.
    fn sent(queue: &mut RoundQueue) -> Vec<(char, usize)> {
        let mut sent = Vec::new();
        queue.send(|packet| {
            sent.push(match packet {
                Packet::Relayed { frame, .. } => ('f', frame.len()),
                Packet::RoundOver(over) => ('o', over.air_round as usize),
                Packet::Mark { number } => ('m', *number as usize),
                other => panic!("{other:?}"),
            });
        });
        sent
    }

    #[test]
    fn rounds_wait_for_the_senders_of_their_frames() {
        let mut queue = queue_in(5);
        queue.record_received(Some(FrameSource { board: 1, air_round: 5 }), &[1]);
        queue.record_end(end(3));
        queue.record_received(None, &[2, 2]);
        queue.record_end(end(4));
        queue.record_received(Some(FrameSource { board: 1, air_round: 7 }), &[3, 3, 3]);
        queue.record_end(end(5));
        assert_eq!((queue.shadow_round(), queue.last_sent_round()), (8, 7));
        queue.record_sent(&[0]);
        assert_eq!((queue.shadow_round(), queue.last_sent_round()), (8, 8));
        let ready_with = |sent: u32, last: u32| queue.ready(last, |source| source.air_round <= sent);
        assert_eq!([4, 5, 6, 7].map(|sent| ready_with(sent, u32::MAX)), [0, 2, 2, 3]);
        assert_eq!(ready_with(7, 3), 1);
        assert_eq!(queue.expected_frames(), Some(&[][..]));

        queue.grant(2);
        assert_eq!(sent(&mut queue), [('f', 1), ('o', 5), ('f', 2), ('o', 6)]);
        assert!(queue.finish_round().is_some() && queue.is_busy());
        assert_eq!(
            queue.unanswered(),
            Some(Packet::RoundOver(RoundOver { air_round: 6, frames: 1, digest: Some(0) }))
        );
        assert!(queue.finish_round().is_some() && !queue.is_busy());
        assert!(queue.finish_round().is_none());
        assert_eq!((queue.round, queue.rounds_behind()), (7, 1));
    }

    #[test]
    fn what_the_board_lacks_is_sent_again() {
        let mut queue = queue_in(5);
        for length in [1, 2, 3] {
            queue.record_received(None, &vec![0; length]);
        }
        queue.record_end(end(0));
        queue.record_end(end(1));
        queue.grant(2);
        assert_eq!(sent(&mut queue), [('f', 1), ('f', 2), ('f', 3), ('o', 5), ('o', 6)]);
        queue.go_back(5, 1);
        assert_eq!(sent(&mut queue), [('f', 2), ('f', 3), ('o', 5), ('o', 6)]);
        queue.go_back(7, 0);
        queue.go_back(4, 0);
        assert_eq!(sent(&mut queue), []);
        assert_eq!([5, 6, 7, 8].map(|round| queue.ended_before(round)), [None, Some(1), Some(2), None]);
    }

    #[test]
    fn a_long_round_is_sent_in_windows() {
        let mut queue = queue_in(0);
        (0..3).for_each(|_| queue.record_received(None, &[0; 4000]));
        queue.record_received(None, &[0; 2 * WINDOW]);
        queue.record_end(end(0));
        queue.grant(1);
        assert_eq!(sent(&mut queue), [('f', 4000), ('f', 4000), ('m', 1)]);
        assert_eq!(sent(&mut queue), []);
        queue.pass_mark(7);
        assert_eq!(queue.unanswered(), Some(Packet::Mark { number: 1 }));
        queue.pass_mark(1);
        assert_eq!(sent(&mut queue), [('f', 4000), ('m', 2)]);
        queue.pass_mark(2);
        assert_eq!(sent(&mut queue), [('f', 2 * WINDOW), ('m', 3)]);
        queue.pass_mark(3);
        assert_eq!(sent(&mut queue), [('o', 0)]);
    }
}
