//! How an agent takes frames.

use super::peers::Peers;
use super::sync::FrameAge;
use super::{Agent, Epoch, MemberSet, Mode, RoundSync};
use crate::linear::first_exception;
use crate::problem::Problem;
use crate::wire;
use crate::wire::frame::{DataHeader, Frame};
use crate::wire::payload::Decoder;

/// Where a frame comes from, as far as that is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Origin {
    /// It was not sealed: the sender that it names is believed.
    Clear,
    /// It was sealed by this agent.
    Sealed {
        /// The agent that sealed it.
        sender: u16,
        /// In which of its boots.
        boot: u32,
    },
}

/// The outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Received {
    /// It counts in this round.
    Taken,
    /// It is of the next round and waits for it.
    Early,
    /// It is of a round that is over, or its sender was heard in that round or a later one already.
    Stale,
    /// It is of an epoch that this agent is not in.
    OtherEpoch,
    /// It opened an epoch.
    NewEpoch,
    /// It is about members and changes nothing here.
    Unchanged,
    /// It was not taken.
    Refused(Refusal),
}

/// Why a frame was not taken. The agent's decision and ledger are unchanged; at most its sender became a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Refusal {
    /// Its bytes are not a frame, or its payload cannot be read.
    #[error(transparent)]
    Wire(wire::Error),
    /// It is this agent's own frame.
    #[error("the frame is this agent's own")]
    Own,
    /// Its sender is not a member of this epoch.
    #[error("the sender is not a member of this epoch")]
    NotMember,
    /// There is no room for another peer.
    #[error("there is no room for another peer")]
    NoRoom,
    /// Its sender uses another wire format.
    #[error("the sender uses wire format {theirs:#010x}, this agent {:#010x}", wire::SCHEMA)]
    Schema {
        /// The sender's format.
        theirs: u32,
    },
    /// Its sender solves a problem of another shape.
    #[error("the sender solves a problem of another shape")]
    Shape,
    /// It names another sender or boot than the one that sealed it.
    #[error("the frame names another sender or boot than its encryption")]
    Impostor,
    /// Its round or epoch is too far ahead of this agent's to be believed from one frame.
    #[error("the round or epoch is too far ahead to be believed from one frame")]
    Jump,
    /// A decision in it is NaN, infinite or larger than steps from the start can have made it.
    #[error("a decision is NaN, infinite or larger than steps from the start can make it")]
    Magnitude,
    /// This agent has stopped with a fault.
    #[error("this agent has stopped")]
    Stopped,
}

/// Rounds by which a sender may be ahead before a single frame is not enough to believe it.
const ROUNDS_AHEAD: u32 = 64;

/// Rounds in which an agent asks for another part of the swarm that it has heard of, at least.
pub(super) const RUMOUR_ROUNDS: u32 = 16;

impl<P, L, const WORDS: usize> Agent<P, L, WORDS>
where
    P: Problem<f32>,
    L: Peers<WORDS>,
{
    /// Takes a frame that arrived. No bytes make it panic.
    pub fn receive(&mut self, origin: Origin, bytes: &[u8]) -> Received {
        if self.fault.is_some() {
            return Received::Refused(Refusal::Stopped);
        }
        let frame = match Frame::decode(bytes) {
            Err(error) => return Received::Refused(Refusal::Wire(error)),
            Ok(frame) => frame,
        };
        if let Origin::Sealed { sender, boot } = origin {
            let is_of_boot = !matches!(frame, Frame::Hello(hello) if hello.boot != boot);
            if sender != frame.sender() || !is_of_boot {
                return Received::Refused(Refusal::Impostor);
            }
        }
        if frame.sender() == self.config.id {
            return Received::Refused(Refusal::Own);
        }
        if self.is_lock_step() && !self.is_present(&frame) {
            return Received::Stale;
        }
        if !self.is_waiting() {
            self.overhear_part(&frame);
        }
        let received = match frame {
            Frame::Data(header, payload) => self.receive_data(header, payload),
            Frame::Hello(hello) => self.receive_hello(&hello),
            Frame::Members(header, set) => self.receive_members(header, set),
            Frame::Admission(admission) => self.receive_admission(&admission),
            Frame::Silence(header, report) => self.receive_silence(header, report),
        };
        // In lock-step a frame of the present round and founding is a sign of life, whatever is in it.
        if self.is_lock_step()
            && frame.round() <= self.round.saturating_add(1)
            && self.is_of_founding(&frame)
            && !matches!(received, Received::Refused(_))
        {
            self.silence.shorten(frame.sender(), 0);
        }
        received
    }

    /// Whether a frame can tell the time of slots, with what it was `received` as, if it came over a link of the scenario. It is fresh
    /// and of this agent's epoch: a frame that was recorded in an earlier life of the swarm is not. Agents that wait agree on a time by
    /// their hellos, whatever their rounds are: they keep it only until they take part.
    pub fn may_tell_time(&self, frame: &Frame<'_>, received: Option<Received>) -> bool {
        let is_refused = matches!(received, Some(Received::Refused(_)));
        let is_stale = received == Some(Received::Stale);
        if self.is_waiting() {
            return !is_refused && (!is_stale || matches!(frame, Frame::Hello(_)));
        }
        let is_of_epoch = match frame {
            Frame::Data(header, _) => header.epoch == self.epoch.tag(),
            Frame::Hello(_) => false,
            _ => frame.epoch() == Some(self.epoch),
        };
        is_of_epoch && !is_refused && !is_stale
    }

    /// Whether a frame is of this agent's founding, as far as it tells.
    fn is_of_founding(&self, frame: &Frame<'_>) -> bool {
        match frame {
            Frame::Data(header, _) => header.epoch == self.epoch.tag(),
            _ => frame.epoch().is_some_and(|epoch| epoch.is_of_founding(self.epoch)),
        }
    }

    /// Takes note of a part of the swarm that is in a later round, or of a higher founding.
    fn overhear_part(&mut self, frame: &Frame<'_>) {
        let rounds_left = match frame {
            // The agent follows its own epoch without asking.
            Frame::Data(header, _) if header.epoch == self.epoch.tag() => return,
            Frame::Hello(hello) if self.is_fellow(hello) => hello.rounds_left.saturating_sub(1),
            // Its round is that of the agent that passes it on, which may be of this part.
            Frame::Hello(_) | Frame::Admission(_) => return,
            Frame::Members(header, _) => header.rounds_left.saturating_sub(1),
            _ => self.rumour_rounds(),
        };
        let ahead = if self.is_lock_step() { frame.round().saturating_sub(self.round) } else { 0 };
        let epoch = match frame {
            // The only epoch that a tag names.
            Frame::Data(header, _) if header.epoch == Epoch::FIRST.tag() => Some(Epoch::FIRST),
            _ => frame.epoch(),
        };
        // Members of one founding may be one round apart for a moment. A hello names the round of another part.
        let is_other_part = epoch.is_some_and(|epoch| !epoch.is_of_founding(self.epoch));
        let is_certain = ahead > 1 || is_other_part || matches!(frame, Frame::Hello(_));
        let lead = if is_certain { ahead } else { 0 };
        let epoch = epoch.filter(|epoch| epoch.is_of_higher_founding(self.epoch));
        self.rumour.hear(lead, epoch, self.round, rounds_left);
    }

    /// For how many rounds agents ask for a part of the swarm that was heard directly: long enough to reach every member.
    pub(super) fn rumour_rounds(&self) -> u8 {
        self.members.len().clamp(RUMOUR_ROUNDS, u8::MAX.into()) as u8
    }

    /// Whether a frame of a lock-step swarm is not older than it may be, as far as this agent can tell.
    fn is_present(&mut self, frame: &Frame<'_>) -> bool {
        let (round, late) = (frame.round(), self.config.late_rounds);
        // Agents that take part send data. Others may be behind like this one.
        let is_data = matches!(frame, Frame::Data(..));
        if !self.sync.is_pending && self.is_joining() && self.sync.is_left_behind(round, self.round, is_data)
        {
            self.sync.doubt();
        }
        if !self.sync.is_pending {
            self.sync.hear(self.round);
            return round.saturating_add(late) >= self.round;
        }
        if let Frame::Hello(hello) = frame {
            if self.is_alone() {
                // No round is left to be found: joiners agree on the highest of their own.
                self.sync.trust_own_count();
            } else if hello.epoch == Epoch::NONE {
                // It knows no more than this agent.
                return false;
            }
        }
        match self.sync.note(round, self.round, late) {
            FrameAge::Other => false,
            FrameAge::Present => true,
            FrameAge::Later => {
                // Frames heard before were recorded.
                if !self.is_alone() {
                    self.alone_since = self.round;
                }
                self.heard_epoch = (!self.is_joining()).then_some(self.epoch);
                if self.is_joining() {
                    self.members = MemberSet::default();
                }
                self.admissions.clear();
                (self.outbox.has_members, self.outbox.has_admission) = (false, false);
                true
            }
        }
    }

    /// Goes on from the round that was found to be the swarm's.
    pub(super) fn synchronise(&mut self) {
        let present = self.present();
        self.sync = RoundSync::found(present);
        self.admissions.clear();
        if self.is_joining() {
            self.round = present;
        } else {
            self.jump_to(present);
        }
        self.alone_since = self.round;
    }

    fn receive_data(&mut self, header: DataHeader, payload: &[u8]) -> Received {
        if header.epoch != self.epoch.tag() || self.sync.is_pending {
            return self.receive_other_epoch(header.epoch);
        }
        if !self.members.contains(header.sender) {
            return Received::Refused(Refusal::NotMember);
        }
        let at = match self.peers.find(header.sender) {
            Ok(at) => at,
            Err(at) if self.peers.insert(at, header.sender) => {
                let peer = self.peers.get_mut(at);
                peer.is_collecting = self.config.links.collects_from(header.sender);
                at
            }
            Err(_) => return Received::Refused(Refusal::NoRoom),
        };
        let words = self.exchanged();
        let is_lock_step = self.is_lock_step();
        if !self.believes_round(at, header.round) {
            return Received::Refused(Refusal::Jump);
        }
        let largest = self.largest_decision(header.round);
        if self.peers.get(at).taken_round.is_some_and(|taken| header.round <= taken) {
            return Received::Stale;
        }
        let (peer, reception) = self.peers.list(at);
        if reception.early_round.is_some_and(|early| header.round <= early) {
            return Received::Stale;
        }
        let rounds_ahead = if is_lock_step { header.round.saturating_sub(self.round) } else { 0 };
        let is_early = rounds_ahead == 1;
        // A payload builds on the one before it, whether that has counted or waits.
        let sigma_before = if reception.early_round.is_some() {
            self.wire[..words].copy_from_slice(&reception.wire[..words]);
            &self.wire[..words]
        } else {
            &peer.rho[..words]
        };
        let v = if is_early { &mut reception.early_v } else { &mut reception.v };
        let coverage = reception.decoder.decode(
            payload,
            header.round,
            sigma_before,
            &mut v[..words],
            &mut reception.wire[..words],
        );
        match coverage {
            Err(error) => return Received::Refused(Refusal::Wire(error)),
            Ok(coverage) => reception.has_v = coverage.v,
        }
        if first_exception(&v[..words], |word: f32| word.abs() <= largest).is_some() {
            // The next payload cannot build on such a one.
            reception.decoder = Decoder::new();
            return Received::Refused(Refusal::Magnitude);
        }
        if is_early {
            reception.early_round = Some(header.round);
            return Received::Early;
        }
        if rounds_ahead > 1 {
            // The swarm went on without this agent: it goes on from where the swarm is.
            self.jump_to(header.round);
        }
        let (peer, reception) = self.peers.list(at);
        let silent = self.silence.of(header.sender).saturating_sub(peer.lived_until(header.round));
        self.silence.shorten(header.sender, silent);
        reception.take(peer, header.round, words, &mut self.t);
        peer.taken_at = self.round;
        // A frame that comes late counts, but its sender is still to be heard in this round.
        reception.is_heard = !is_lock_step || header.round == self.round;
        Received::Taken
    }

    /// Whether the peer at place `at` can be in `round`, as far as one frame can show it.
    fn believes_round(&mut self, at: usize, round: u32) -> bool {
        let peer = self.peers.get(at);
        let (expected, tolerance) = match (self.config.mode, peer.taken_round) {
            (Mode::LockStep, _) => (self.round, ROUNDS_AHEAD),
            // Its clock is its own: a few times as fast as this agent's, at most.
            (Mode::FreeRunning, Some(taken)) => {
                let elapsed = self.round.saturating_sub(peer.taken_at);
                (taken.saturating_add(elapsed.saturating_mul(4)), ROUNDS_AHEAD)
            }
            (Mode::FreeRunning, None) => (self.round.saturating_mul(2), ROUNDS_AHEAD.max(round / 4)),
        };
        round <= expected.saturating_add(ROUNDS_AHEAD)
            || self.round_claim.is_borne_out(round, tolerance, self.round)
    }

    /// The largest word of a decision that steps can have made of the start by `round`.
    fn largest_decision(&self, round: u32) -> f32 {
        self.largest_start + (round as f32 + 1.0) * self.largest_step
    }

    /// Goes on from `round` without having lived through the rounds before it.
    pub(super) fn jump_to(&mut self, round: u32) {
        self.rumour.catch_up(round.saturating_sub(self.round));
        self.round = round;
        let words = self.exchanged();
        for index in 0..self.peers.listed() {
            let (peer, reception) = self.peers.listed_at_mut(index);
            reception.skip(peer, words, &mut self.t[..words]);
        }
        self.outbox.has_data = true;
    }
}
