//! One agent of a simulation, with all that surrounds it on a board.

use super::fragments::FragmentPath;
use super::{AgentProblem, HeapPeers, ledger_of};
use crate::air::{FrameVerdict, Listener, ReceivedFrame};
use crate::sealing::{FrameSeal, refusal_cause};
use crate::swarm::books::{Balance, OpenAccount};
use fabswarm_shared::agent::{Agent, Origin, Received, Refusal, Report};
use fabswarm_shared::wire;

/// An agent of a simulation.
pub(super) type HeapAgent<const WORDS: usize> = Agent<AgentProblem, HeapPeers<WORDS>, WORDS>;

/// One agent with its seal, its clock and its saved state.
#[derive(Debug)]
pub(super) struct SimAgent<const WORDS: usize> {
    pub(super) agent: Box<HeapAgent<WORDS>>,
    pub(super) seal: FrameSeal,
    pub(super) boot: u32,
    /// Whether it has sent its frame of the current round.
    pub(super) has_sent: bool,
    /// How frames reach it where an intruder forges fragments.
    pub(super) fragments: Option<FragmentPath>,
    /// Frames that are sealed and not yet on the air.
    pub(super) outbox: FrameQueue,
    /// The fresh reading of its board, until its round ends: frames may still tell another round, in which another reading has its turn.
    pub(super) reading: Option<f32>,
    /// The end of its current round, until it has been looked at.
    pub(super) report: Option<Report>,
    /// Frames that it refused since its last round ended.
    pub(super) refused: u32,
    pub(super) buffer: Vec<u8>,
    /// The state saved at the end of its last round, if it will crash and remember.
    pub(super) saved: Option<SavedAgent>,
    pub(super) rate: f64,
    pub(super) phase: f64,
}

impl<const WORDS: usize> SimAgent<WORDS> {
    /// How often its clock ticks in this slot.
    pub(super) fn ticks(&mut self) -> u32 {
        self.phase += self.rate;
        let ticks = self.phase.floor();
        self.phase -= ticks;
        ticks as u32
    }

    /// Seals its frames, once per round. Frames that it produces later wait for the next round.
    pub(super) fn compose(&mut self) {
        if std::mem::replace(&mut self.has_sent, true) {
            return;
        }
        while let Ok(Some(length)) = self.agent.poll_frame(&mut self.buffer) {
            self.outbox.push(self.seal.seal(&self.buffer[..length]));
        }
    }

    /// Ends its round, with the fresh reading if there is one.
    pub(super) fn end_round(&mut self) {
        if let Some(reading) = self.reading.take() {
            self.agent.take_reading(reading);
        }
        self.report = Some(self.agent.end_round());
    }

    /// Hears a frame that everybody with the key could open.
    pub(super) fn hear(&mut self, received: ReceivedFrame<'_>) -> FrameVerdict {
        let Self { agent, seal, fragments, refused, .. } = self;
        let ReceivedFrame { sender, bytes, opened } = received;
        let mut hear = |opened: Result<(Origin, &[u8]), wire::Error>| match opened {
            Ok((origin, frame)) => {
                let received = agent.receive(origin, frame);
                *refused += u32::from(matches!(received, Received::Refused(_)));
                hearing(received)
            }
            Err(error) => {
                *refused += 1;
                match error {
                    wire::Error::Replayed => FrameVerdict::Useless,
                    error => FrameVerdict::Refused(refusal_cause(error)),
                }
            }
        };
        match fragments {
            None => hear(seal.admit(opened, bytes)),
            Some(fragments) => fragments.carry(sender, bytes, |frame| {
                // Forged fragments make frames that were never sent.
                hear(if frame == bytes { seal.admit(opened, bytes) } else { seal.open(frame) })
            }),
        }
    }
}

/// Frames, one after the other in a buffer that is used again.
#[derive(Debug, Default)]
pub(super) struct FrameQueue {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl FrameQueue {
    fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    /// Takes all frames out, in the order in which they came.
    pub(super) fn empty(&mut self, mut take: impl FnMut(&[u8])) {
        let mut start = 0;
        for end in self.ends.drain(..) {
            take(&self.bytes[start..end]);
            start = end;
        }
        self.bytes.clear();
    }
}

/// An agent's part of a slot, once the air is ready.
pub(super) struct SlotWork<'a, const WORDS: usize> {
    pub(super) own: &'a mut SimAgent<WORDS>,
    pub(super) account: OpenAccount<'a>,
    pub(super) is_ending: bool,
    /// The entry of its ledger in the books, if its round ended, and its fault.
    pub(super) balance: Balance,
}

impl<const WORDS: usize> Listener for SlotWork<'_, WORDS> {
    fn prefetch(&self, sender: usize) -> usize {
        let peer = self.own.agent.peers().of(sender).map_or(0, |peer| usize::from(peer.sender()));
        peer + self.own.seal.boot_of(sender) as usize + self.account.rounds_behind(sender) as usize
    }

    fn hear(&mut self, frame: ReceivedFrame<'_>) -> FrameVerdict {
        self.own.hear(frame)
    }

    fn end_slot(&mut self) {
        let Self { own, account, is_ending, balance } = self;
        let id = own.agent.id();
        let mut collect =
            |own: &SimAgent<WORDS>| account.collect(id, own.agent.epoch(), own.agent.collections());
        let collected = collect(own);
        own.report = None;
        if *is_ending {
            own.end_round();
        }
        // Frames that came early were collected as the round began.
        *balance = match collected.and_then(|()| if *is_ending { collect(own) } else { Ok(()) }) {
            Err(imbalance) => imbalance.into(),
            Ok(()) if *is_ending => account.balance(id, &ledger_of(&own.agent)),
            Ok(()) => Balance::default(),
        };
    }
}

/// The content of an agent's flash.
#[derive(Debug)]
pub(super) struct SavedAgent {
    pub(super) state: Vec<u32>,
    /// The boots it heard of others.
    pub(super) boots: Vec<u32>,
}

fn hearing(received: Received) -> FrameVerdict {
    match received {
        Received::Taken | Received::Early | Received::NewEpoch => FrameVerdict::Taken,
        Received::Stale | Received::OtherEpoch | Received::Unchanged => FrameVerdict::Useless,
        Received::Refused(refusal) => FrameVerdict::Refused(match refusal {
            Refusal::Wire(error) => refusal_cause(error),
            Refusal::Own => "own frame",
            Refusal::NotMember => "not a member",
            Refusal::NoRoom => "no room for another peer",
            Refusal::Schema { .. } => "other wire format",
            Refusal::Shape => "other problem",
            Refusal::Impostor => "encrypted by another sender",
            Refusal::Jump => "round or epoch far ahead",
            Refusal::Magnitude => "decision out of range",
            Refusal::Stopped => "receiver stopped",
            _ => "other",
        }),
        _ => FrameVerdict::Useless,
    }
}
