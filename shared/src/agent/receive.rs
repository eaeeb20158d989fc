//! How an agent takes frames.

use super::Agent;
use super::peers::Peers;
use crate::problem::Problem;
use crate::wire;
use crate::wire::frame::{DataHeader, Frame};

/// Where a frame comes from, as far as that is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl<P: Problem<f32>, L: Peers<WORDS>, const WORDS: usize> Agent<P, L, WORDS> {
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
        if !self.membership.hear(&self.config, &frame) {
            return Received::Stale;
        }
        let received = if let Frame::Data(header, payload) = frame {
            self.receive_data(header, payload)
        } else {
            let at = self.ledger.peers.find(frame.sender()).ok();
            let taken_at = at.and_then(|at| self.ledger.taken(at)).map(|(_, at)| at);
            let (received, has_jumped) =
                self.membership.receive(&self.config, &self.ledger.shape, &frame, taken_at);
            if has_jumped {
                self.ledger.skip_rounds();
            }
            received
        };
        if received == Received::NewEpoch {
            self.begin_epoch();
        }
        self.membership.note_life(&self.config, &frame, received);
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
        self.membership.is_of_epoch(frame) && !is_refused && !is_stale
    }

    fn receive_data(&mut self, header: DataHeader, payload: &[u8]) -> Received {
        let DataHeader { sender, epoch, round } = header;
        if epoch != self.epoch().tag() || self.membership.rounds.is_pending {
            return self.membership.receive_other_epoch(epoch);
        }
        if !self.members().contains(sender) {
            return Received::Refused(Refusal::NotMember);
        }
        let Some(at) = self.ledger.find_or_insert(&self.config, sender) else {
            return Received::Refused(Refusal::NoRoom);
        };
        if !self.membership.rounds.believes(self.config.mode, self.ledger.taken(at), round) {
            return Received::Refused(Refusal::Jump);
        }
        let is_lock_step = self.config.is_lock_step();
        let ahead = if is_lock_step { round.saturating_sub(self.round()) } else { 0 };
        let received = self.ledger.read(at, round, ahead == 1, payload);
        if received != Received::Taken {
            return received;
        }
        if ahead > 1 {
            // The swarm went on without this agent: it goes on from where the swarm is.
            self.membership.jump_to(round);
            self.ledger.skip_rounds();
        }
        self.membership.silence.discount(sender, self.ledger.peers.get(at).lived_until(round));
        let now = self.round();
        // A frame that comes late counts, but its sender is still to be heard in this round.
        self.ledger.take(at, round, now, !is_lock_step || round == now);
        received
    }
}
