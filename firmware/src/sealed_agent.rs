//! An agent whose frames are sealed and whose state is kept in storage.
//!
//! Nothing here awaits. Functions with large buffers are never inlined, so that no two of those buffers are on the stack at
//! once.

use crate::{
    MEMBERS, WORDS,
    sizes::{PEERS, STAMPED},
    storage::BoardStorage,
};
use core::convert::Infallible;
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    agent::{self, Agent, Config, Links, MemberSet, Origin, PeerSlot, Received, Refusal, Report},
    packet,
    problem::Problem,
    provisioning::{Error, Pace, Page},
    slots::{STAMP_ROOM, Stamp},
    wire::{
        self,
        frame::Frame,
        seal::{Key, Opener, Sealer},
    },
};

/// The peers of a board's agent. They take most of its memory and are constructed in place.
pub(crate) type PeerList = heapless::Vec<PeerSlot<WORDS>, PEERS>;

pub(crate) type BoardAgent<'a, P> = Agent<P, &'a mut PeerList, WORDS>;

/// Only a state that is saved this often is the one that the swarm knows: its running sum may not go back.
pub(crate) const EVERY_ROUND: u32 = 1;

/// The agent of a board, with what seals and opens its frames.
pub(crate) struct SealedAgent<'p, 'a, P> {
    pub(crate) agent: &'p mut BoardAgent<'a, P>,
    /// `None` if the swarm's frames are not sealed.
    key: Option<Key>,
    sealer: Sealer,
    opener: &'a mut Opener<MEMBERS>,
    /// Whether frames carry the time of their senders.
    is_stamped: bool,
    /// The senders whose frames it takes, if no host delivers by links; `None` for all.
    senders: Option<MemberSet>,
}

/// The outcome of a received frame.
pub(crate) struct FrameReport {
    pub(crate) sender: u16,
    /// The time of its sender, if it can be trusted.
    pub(crate) stamp: Option<Stamp>,
    /// The agent's response to it; `None` if it was not for the agent.
    pub(crate) received: Option<Received>,
}

impl FrameReport {
    /// The bytes are not a frame of this swarm.
    const fn refused(error: wire::Error) -> Self {
        Self { sender: u16::MAX, stamp: None, received: Some(Received::Refused(Refusal::Wire(error))) }
    }

    /// Why it was refused, if it was.
    pub(crate) const fn refusal(&self) -> Option<Refusal> {
        match self.received {
            Some(Received::Refused(refusal)) => Some(refusal),
            _ => None,
        }
    }
}

impl<'p, 'a, P: Problem<f32> + Copy> SealedAgent<'p, 'a, P> {
    /// Constructs the agent of `page` in `place`: moving it there would need its size in stack.
    #[inline(never)]
    pub(crate) fn new_in(
        place: &'p mut Option<BoardAgent<'a, P>>,
        page: &Page<'_, P>,
        sealer: Sealer,
        (peers, opener): (&'a mut PeerList, &'a mut Opener<MEMBERS>),
    ) -> Result<Self, Error> {
        let config = Config { boot: sealer.boot(), ..page.agent };
        let agent = Agent::new_in(place, config, page.problem, page.start, peers).map_err(refuse)?;
        let key = page.key.as_ref().map(Key::new);
        *opener = Opener::new();
        let is_stamped = matches!(page.pace, Pace::Slots { .. });
        let senders = match page.agent.links {
            // A host that simulates the air delivers over links only.
            Links::Known { senders, .. } if page.pace != Pace::Air => Some(senders),
            _ => None,
        };
        Ok(Self { agent, key, sealer, opener, is_stamped, senders })
    }

    /// Restores the state or decision saved under this page, if there is one.
    #[inline(never)]
    pub(crate) fn restore<F: NorFlash>(
        &mut self,
        storage: &mut BoardStorage<F>,
        page: &Page<'_, P>,
        page_crc: u32,
    ) -> Result<(), Error> {
        if let Some(mut saved) = storage.saved().filter(|_| page.save_every > 0) {
            let (mut saved_under, mut boots) = ([0], [0; MEMBERS]);
            let is_restored = saved.read(&mut saved_under)
                && saved_under == [page_crc]
                && saved.read(&mut boots)
                && if page.save_every == EVERY_ROUND {
                    self.agent.restore(|words| saved.read(words)).is_ok()
                } else {
                    let mut decision = [0.0; WORDS];
                    let decision = &mut decision[..page.start.len()];
                    saved.read(bytemuck::cast_slice_mut(decision)) && self.agent.reset(decision).is_ok()
                };
            if is_restored {
                for (sender, boot) in boots.into_iter().enumerate() {
                    self.opener.restore_boot(sender as u16, boot);
                }
            } else {
                warn!(
                    "the saved state belongs to another provisioning record or firmware; starting from the record"
                );
                self.agent.reset(page.start).map_err(refuse)?;
            }
        }
        info!("agent {} starts, boot {}, round {}", self.agent.id(), self.sealer.boot(), self.agent.round());
        Ok(())
    }

    /// Saves the CRC of the agent's page, the boots it heard of others, and its state or only its decision. Returns whether that
    /// succeeded.
    #[inline(never)]
    pub(crate) fn save<F: NorFlash>(
        &self,
        storage: &mut BoardStorage<F>,
        page_crc: u32,
        is_whole: bool,
    ) -> bool {
        let mut words = 1 + MEMBERS;
        let Ok(()) = self.each_saved(is_whole, |part| {
            words += part.len();
            Ok::<_, Infallible>(())
        });
        let mut draft = storage.draft(words);
        let written = draft
            .write(&[page_crc])
            .and_then(|()| self.opener.boots().try_for_each(|boot| draft.write(&[boot])))
            .and_then(|()| self.each_saved(is_whole, |words| draft.write(words)));
        written.and_then(|()| draft.commit()).is_ok()
    }

    fn each_saved<E>(&self, is_whole: bool, mut write: impl FnMut(&[u32]) -> Result<(), E>) -> Result<(), E> {
        if is_whole { self.agent.save(write) } else { write(bytemuck::cast_slice(self.agent.decision())) }
    }

    /// Writes a packet with the words of the agent's state from word `from` on, as many as fit.
    #[inline(never)]
    pub(crate) fn write_state(&self, from: u32, out: &mut [u8]) -> Option<usize> {
        let start = packet::write_state_header(from, out).ok()?;
        let mut room = out[start..].as_chunks_mut().0.iter_mut();
        let (mut number, mut written) = (0, 0);
        let Ok(()) = self.agent.save(|words| {
            for word in words {
                if number >= from
                    && let Some(place) = room.next()
                {
                    *place = word.to_le_bytes();
                    written += place.len();
                }
                number += 1;
            }
            Ok::<_, Infallible>(())
        });
        Some(start + written)
    }

    /// Writes the next frame of this round to the start of `out`, with `stamp` in front and sealed, if there is one.
    #[inline(never)]
    pub(crate) fn poll_frame(&mut self, stamp: Option<&Stamp>, out: &mut [u8]) -> Option<usize> {
        // Errors are treated as a lost frame: buffers hold the longest frame, so none is expected.
        let mut length = self.agent.poll_frame(out).ok().flatten()?;
        if self.key.is_none() && stamp.is_none() {
            return Some(length);
        }
        let mut plain = [0; STAMPED];
        match stamp {
            // An agent that waits may keep a time that was recorded. Only others that wait take it, from its hello.
            Some(stamp) => {
                let is_hello = matches!(Frame::decode(&out[..length]), Ok(Frame::Hello(_)));
                let is_timed = stamp.is_timed && (is_hello || !self.agent.is_waiting());
                length =
                    Stamp { is_timed, ..*stamp }.join(&out[..length], self.key.is_some(), &mut plain).ok()?;
            }
            None => plain.get_mut(..length)?.copy_from_slice(&out[..length]),
        }
        if let Some(key) = &self.key {
            return self.sealer.seal(key, &plain[..length], out).ok();
        }
        out.get_mut(..length)?.copy_from_slice(&plain[..length]);
        Some(length)
    }

    /// Opens a received frame and passes it to the agent, if the agent may take it.
    #[inline(never)]
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> FrameReport {
        let mut plain = [0; STAMP_ROOM + STAMPED];
        let room = &mut plain[STAMP_ROOM..];
        let (origin, length) = match &self.key {
            None => match room.get_mut(..bytes.len()) {
                Some(room) => {
                    room.copy_from_slice(bytes);
                    (Origin::Clear, bytes.len())
                }
                None => return FrameReport::refused(wire::Error::FrameTooLong),
            },
            Some(key) => match self.opener.open(key, bytes, room) {
                Ok(opened) => {
                    (Origin::Sealed { sender: opened.sender, boot: opened.boot }, opened.frame.len())
                }
                Err(error) => return FrameReport::refused(error),
            },
        };
        let plain = &mut plain[..STAMP_ROOM + length];
        let (stamp, frame) = if self.is_stamped {
            let sealed_by = match origin {
                Origin::Sealed { sender, .. } => Some(sender),
                Origin::Clear => None,
            };
            match Stamp::split(plain, sealed_by) {
                Ok((stamp, frame)) => (Some(stamp), frame),
                Err(error) => return FrameReport::refused(error),
            }
        } else {
            (None, &plain[STAMP_ROOM..])
        };
        let decoded = match Frame::decode(frame) {
            Ok(decoded) => decoded,
            Err(error) => return FrameReport::refused(error),
        };
        let sender = decoded.sender();
        // A frame from outside the links of the scenario only tells the time.
        let is_linked = match &self.senders {
            Some(senders) => senders.contains(sender),
            None => true,
        };
        let received = is_linked.then(|| self.agent.receive(origin, frame));
        let stamp = stamp.filter(|_| self.agent.may_tell_time(&decoded, received));
        FrameReport { sender, stamp, received }
    }

    /// Ends the round, on the common beat or on the agent's own clock.
    #[inline(never)]
    pub(crate) fn end_round(&mut self, is_on_beat: bool) -> Report {
        if is_on_beat { self.agent.end_on_beat() } else { self.agent.end_round() }
    }

    pub(crate) fn boot(&self) -> u32 {
        self.sealer.boot()
    }
}

/// Maps the reason why an agent cannot be constructed to an error of its page.
fn refuse(error: agent::Error) -> Error {
    error!("the agent cannot be constructed: {}", error);
    match error {
        agent::Error::TooLarge { .. } | agent::Error::Identity => Error::TooLarge,
        _ => Error::Malformed,
    }
}
