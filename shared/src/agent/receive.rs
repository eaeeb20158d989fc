//! What an agent makes of the frames it hears.

use super::peers::Peers;
use super::{Agent, Mode};
use crate::ledger::Arithmetic;
use crate::problem::Problem;
use crate::wire;
use crate::wire::frame::{DataHeader, Frame};

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Received {
    /// It counts in this round.
    Taken,
    /// It is of the next round and waits for it.
    Early,
    /// Its sender was heard in that round or a later one already.
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

/// Why a frame was not taken. Nothing that counts has changed then: at most there is a place for its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Its bytes are no frame, or its payload cannot be read.
    Wire(wire::Error),
    /// This agent's own words came back.
    Own,
    /// Its sender is not a member of this epoch.
    NotMember,
    /// There is no room for another peer.
    NoRoom,
    /// Its sender speaks another wire format.
    Schema {
        /// The format it speaks.
        theirs: u32,
    },
    /// Its sender solves a problem of another shape.
    Shape,
    /// This agent has stopped.
    Stopped,
}

impl<P, A, L, const WORDS: usize> Agent<P, A, L, WORDS>
where
    P: Problem<f32>,
    A: Arithmetic,
    L: Peers<A, WORDS>,
{
    /// Takes a frame that arrived. No bytes make it panic.
    pub fn receive(&mut self, bytes: &[u8]) -> Received {
        if self.fault.is_some() {
            return Received::Refused(Refusal::Stopped);
        }
        match Frame::decode(bytes) {
            Err(error) => Received::Refused(Refusal::Wire(error)),
            Ok(frame) if frame.sender() == self.config.id => Received::Refused(Refusal::Own),
            Ok(Frame::Data(header, payload)) => self.receive_data(header, payload),
            Ok(Frame::Hello(hello)) => self.receive_hello(&hello),
            Ok(Frame::Members(header, set)) => self.receive_members(header, set),
        }
    }

    fn receive_data(&mut self, header: DataHeader, payload: &[u8]) -> Received {
        if header.epoch != self.epoch {
            return self.receive_other_epoch(header);
        }
        if !self.members.contains(header.sender) {
            return Received::Refused(Refusal::NotMember);
        }
        let at = match self.peers.find(header.sender) {
            Ok(at) => at,
            Err(at) if self.peers.insert(at, header.sender) => at,
            Err(_) => return Received::Refused(Refusal::NoRoom),
        };
        let words = self.exchanged();
        let is_lock_step = self.config.mode == Mode::LockStep;
        let peer = &mut self.peers.as_mut_slice()[at];
        let newest = peer.early_round.or(peer.taken_round);
        let is_too_late = is_lock_step && header.round.saturating_add(self.config.late_rounds) < self.round;
        if is_too_late || newest.is_some_and(|newest| header.round <= newest) {
            return Received::Stale;
        }
        let rounds_ahead = if is_lock_step { header.round.saturating_sub(self.round) } else { 0 };
        let is_early = rounds_ahead == 1;
        // A payload builds on the one before it, whether that has counted or waits.
        if peer.early_round.is_some() {
            self.wire[..words].copy_from_slice(&peer.wire[..words]);
        } else {
            for (wire, &rho) in self.wire.iter_mut().zip(&peer.rho[..words]) {
                *wire = A::to_wire(rho);
            }
        }
        let v = if is_early { &mut peer.early_v } else { &mut peer.v };
        let told = peer.decoder.decode(
            payload,
            header.round,
            &self.wire[..words],
            &mut v[..words],
            &mut peer.wire[..words],
        );
        match told {
            Err(error) => return Received::Refused(Refusal::Wire(error)),
            Ok(told) => peer.is_v_told = told.v,
        }
        if is_early {
            peer.early_round = Some(header.round);
            return Received::Early;
        }
        if rounds_ahead > 1 {
            // The swarm went on without this agent: it goes on from where the swarm is.
            self.jump_to(header.round);
        }
        let peer = &mut self.peers.as_mut_slice()[at];
        peer.take(header.round, words, &mut self.t);
        peer.heard_at = self.round;
        // A frame that comes late counts, but its sender is still to be heard in this round.
        peer.is_heard = !is_lock_step || header.round == self.round;
        Received::Taken
    }

    /// Goes on from `round` without having lived through the rounds before it.
    fn jump_to(&mut self, round: u32) {
        self.round = round;
        let words = self.exchanged();
        for peer in self.peers.as_mut_slice() {
            peer.skip(words, &mut self.t[..words]);
        }
        self.outbox.has_data = true;
    }
}
