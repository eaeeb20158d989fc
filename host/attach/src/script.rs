//! What a board has yet to go through: the rounds of its shadow, one turn each.

use fabswarm_shared::packet::{Packet, RoundOver};
use std::collections::VecDeque;

/// What a packet takes in a receiver besides a frame: headers, checksum, words that are not full.
const PACKET_BYTES: usize = 64;

/// What another board says in one of the air's rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Speech {
    /// The board's number.
    pub(super) board: usize,
    /// The round by that board's count.
    pub(super) air_round: u32,
}

/// What a shadow came to with a round.
#[derive(Debug)]
pub(super) struct End {
    /// The air's slot in which it did.
    pub(super) slot: u32,
    pub(super) digest: u32,
    pub(super) state: Vec<u32>,
}

/// One round as a shadow went through it.
#[derive(Debug, Default)]
struct Turn {
    /// Frames it said.
    said: Vec<Vec<u8>>,
    /// Frames it heard.
    heard: Vec<Vec<u8>>,
    /// Where those came from.
    sources: Vec<Speech>,
    /// `None` while the shadow is in the round.
    end: Option<End>,
}

impl Turn {
    /// Whether the shadow has said all it has to say in it.
    const fn is_spoken(&self) -> bool {
        self.end.is_some() || !self.said.is_empty()
    }
}

/// The turns between a board and its shadow.
#[derive(Debug)]
pub(super) struct Script {
    /// The air's round that the board is in.
    round: u32,
    /// Its turns from that round on. The last is the one its shadow is in.
    turns: VecDeque<Turn>,
    /// How many of them the board may go through at once.
    granted: usize,
    /// The turn and the packet of it that is sent next.
    next: (usize, usize),
    /// How many marks were sent, and whether the last was not said back yet.
    marks: u32,
    is_held: bool,
    /// Bytes that the board is sent before it must have dealt with them.
    window: usize,
}

impl Script {
    /// For a board that begins in `round`, as its shadow does, and takes so many bytes at once.
    pub(super) fn new(round: u32, window: usize) -> Self {
        let turns = [Turn::default()].into();
        Self { round, turns, granted: 0, next: (0, 0), marks: 0, is_held: false, window }
    }

    /// The shadow says a frame.
    pub(super) fn say(&mut self, frame: &[u8]) {
        if let Some(turn) = self.turns.back_mut() {
            turn.said.push(frame.to_vec());
        }
    }

    /// The shadow hears a frame, of a board or of somebody else.
    pub(super) fn hear(&mut self, source: Option<Speech>, frame: &[u8]) {
        if let Some(turn) = self.turns.back_mut() {
            turn.heard.push(frame.to_vec());
            turn.sources.extend(source);
        }
    }

    /// The shadow ends its round.
    pub(super) fn end(&mut self, end: End) {
        if let Some(turn) = self.turns.back_mut() {
            turn.end = Some(end);
        }
        self.turns.push_back(Turn::default());
    }

    /// The air's round that the board is in.
    pub(super) const fn round(&self) -> u32 {
        self.round
    }

    /// The one that its shadow is in.
    pub(super) fn shadow_round(&self) -> u32 {
        self.round + self.rounds_behind() as u32
    }

    /// The last one that its shadow has spoken in. A frozen one is in a round in which it has yet to speak.
    pub(super) fn last_speech(&self) -> u32 {
        let is_silent = !self.turns.back().is_some_and(Turn::is_spoken);
        self.shadow_round().saturating_sub(is_silent.into())
    }

    /// How far the shadow is ahead.
    pub(super) fn rounds_behind(&self) -> usize {
        self.turns.len() - 1
    }

    /// Whether the board has turns to go through.
    pub(super) const fn is_under_way(&self) -> bool {
        self.granted > 0
    }

    /// What the shadow said in the board's round, if it has spoken.
    pub(super) fn words(&self) -> Option<&[Vec<u8>]> {
        self.turns.front().filter(|turn| turn.is_spoken()).map(|turn| &*turn.said)
    }

    /// How many turns the board could go through now: the shadow must have ended them, by slot `last`, and whoever it heard must
    /// have spoken.
    pub(super) fn ready(&self, last: u32, has_spoken: impl Fn(Speech) -> bool) -> usize {
        let is_ready = |turn: &&Turn| {
            turn.end.as_ref().is_some_and(|end| end.slot <= last)
                && turn.sources.iter().all(|&speech| has_spoken(speech))
        };
        self.turns.iter().take_while(is_ready).count()
    }

    /// Lets the board go through its next turns, all others being done.
    pub(super) fn grant(&mut self, turns: usize) {
        self.granted = turns;
        self.next = (0, 0);
    }

    /// Sends what the board's receiver can hold.
    pub(super) fn send(&mut self, mut push: impl FnMut(&Packet)) {
        let mut room = self.window;
        while !self.is_held && self.next.0 < self.granted {
            let (turn, packet) = self.next;
            let frame = self.turns[turn].heard.get(packet);
            let bytes = PACKET_BYTES + frame.map_or(0, Vec::len);
            if bytes > room && room < self.window {
                self.marks += 1;
                self.is_held = true;
                push(&Packet::Mark { number: self.marks });
            } else if let Some(frame) = frame {
                push(&Packet::Frame(frame));
                self.next = (turn, packet + 1);
            } else {
                push(&self.over(turn));
                self.next = (turn + 1, 0);
            }
            room = room.saturating_sub(bytes);
        }
    }

    fn over(&self, turn: usize) -> Packet<'static> {
        let digest = self.turns[turn].end.as_ref().map(|end| end.digest);
        Packet::RoundOver(RoundOver { air_round: self.round + turn as u32, digest })
    }

    /// What the board has not answered, to be sent again.
    pub(super) fn unanswered(&self) -> Option<Packet<'static>> {
        if self.is_held {
            return Some(Packet::Mark { number: self.marks });
        }
        self.is_under_way().then(|| self.over(0))
    }

    /// The board goes through no more turns.
    pub(super) const fn stop(&mut self) {
        self.granted = 0;
        self.is_held = false;
    }

    /// The board has dealt with what came before a mark.
    pub(super) fn pass(&mut self, mark: u32) {
        self.is_held &= mark != self.marks;
    }

    /// The board has gone through a turn, and its shadow came to this.
    pub(super) fn finish(&mut self) -> Option<End> {
        self.granted = self.granted.checked_sub(1)?;
        self.next.0 = self.next.0.saturating_sub(1);
        self.round += 1;
        self.turns.pop_front()?.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: usize = 8 * 1024;

    fn end(slot: u32) -> End {
        End { slot, digest: 0, state: Vec::new() }
    }

    /// The packets that `script` sends now: the length of a frame, `'o'` for the end of a round, `'m'` for a mark.
    fn sent(script: &mut Script) -> Vec<(char, usize)> {
        let mut sent = Vec::new();
        script.send(|packet| {
            sent.push(match packet {
                Packet::Frame(frame) => ('f', frame.len()),
                Packet::RoundOver(over) => ('o', over.air_round as usize),
                Packet::Mark { number } => ('m', *number as usize),
                other => panic!("{other:?}"),
            });
        });
        sent
    }

    #[test]
    fn turns_wait_for_those_whose_words_they_hear() {
        let mut script = Script::new(5, WINDOW);
        script.hear(Some(Speech { board: 1, air_round: 5 }), &[1]);
        script.end(end(3));
        script.hear(None, &[2, 2]);
        script.end(end(4));
        script.hear(Some(Speech { board: 1, air_round: 7 }), &[3, 3, 3]);
        script.end(end(5));
        assert_eq!((script.shadow_round(), script.last_speech()), (8, 7));
        script.say(&[0]);
        assert_eq!((script.shadow_round(), script.last_speech()), (8, 8));
        let ready_with = |said: u32, last: u32| script.ready(last, |speech| speech.air_round <= said);
        assert_eq!([4, 5, 6, 7].map(|said| ready_with(said, u32::MAX)), [0, 2, 2, 3]);
        assert_eq!(ready_with(7, 3), 1);
        assert_eq!(script.words(), Some(&[][..]));

        script.grant(2);
        assert_eq!(sent(&mut script), [('f', 1), ('o', 5), ('f', 2), ('o', 6)]);
        assert!(script.finish().is_some() && script.is_under_way());
        assert_eq!(script.unanswered(), Some(Packet::RoundOver(RoundOver { air_round: 6, digest: Some(0) })));
        assert!(script.finish().is_some() && !script.is_under_way());
        assert!(script.finish().is_none());
        assert_eq!((script.round(), script.rounds_behind()), (7, 1));
    }

    #[test]
    fn a_long_turn_is_sent_as_its_receiver_takes_it() {
        let mut script = Script::new(0, WINDOW);
        (0..3).for_each(|_| script.hear(None, &[0; 4000]));
        script.hear(None, &[0; 2 * WINDOW]);
        script.end(end(0));
        script.grant(1);
        assert_eq!(sent(&mut script), [('f', 4000), ('f', 4000), ('m', 1)]);
        assert_eq!(sent(&mut script), []);
        script.pass(7);
        assert_eq!(script.unanswered(), Some(Packet::Mark { number: 1 }));
        script.pass(1);
        assert_eq!(sent(&mut script), [('f', 4000), ('m', 2)]);
        script.pass(2);
        assert_eq!(sent(&mut script), [('f', 2 * WINDOW), ('m', 3)]);
        script.pass(3);
        assert_eq!(sent(&mut script), [('o', 0)]);
    }
}
