//! The agent behind its seal: sealed frames in, sealed frames out, its state in storage.
//!
//! Everything here runs to its end without waiting. The functions with large buffers stay out of line, so that no two of
//! those buffers are ever on the stack together.

use crate::{
    MEMBERS, WORDS,
    sizes::{FRAME, PEERS},
    storage::BoardStorage,
};
use core::convert::Infallible;
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    agent::{self, Agent, Config, Peer, Received, Report},
    graph::Schedule,
    ledger::Exact,
    packet,
    problem::{AnyProblem, Problem},
    provisioning::{Error, Page},
    wire::seal::{Key, Opener, Sealer},
};

/// Room for everybody an agent may hear. It takes most of a board's memory, so it is made where it stays.
pub(crate) type PeerList = heapless::Vec<Peer<Exact, WORDS>, PEERS>;

/// The agent itself.
pub(crate) type BoardAgent<'a> = Agent<AnyProblem<'a, f32>, Exact, &'a mut PeerList, WORDS>;

/// An agent that speaks in the name of a board.
pub(crate) struct SealedAgent<'p, 'a> {
    agent: &'p mut BoardAgent<'a>,
    /// `None` where the swarm speaks in the clear.
    key: Option<Key>,
    sealer: Sealer,
    opener: Opener<MEMBERS>,
}

impl<'p, 'a> SealedAgent<'p, 'a> {
    /// Makes the agent that `page` describes in `place`: moving it there would take its size in stack.
    #[inline(never)]
    pub(crate) fn make(
        place: &'p mut Option<BoardAgent<'a>>,
        page: &Page<'a>,
        sealer: Sealer,
        peers: &'a mut PeerList,
    ) -> Result<Self, Error> {
        let boot = sealer.boot().saturating_add(1);
        let config = Config { boot, ..page.agent };
        let agent = Agent::new_in(place, config, page.problem, page.start, peers).map_err(refuse)?;
        let (key, opener) = (page.key.as_ref().map(Key::new), Opener::new());
        Ok(Self { agent, key, sealer, opener })
    }

    /// Goes on from what storage remembers under this page, if it remembers anything.
    #[inline(never)]
    pub(crate) fn restore<F: NorFlash>(
        &mut self,
        storage: &mut BoardStorage<F>,
        page: &Page<'_>,
        page_crc: u32,
    ) -> Result<(), Error> {
        if let Some(mut saved) = storage.saved().filter(|_| page.saves_state) {
            let mut saved_under = [0];
            let is_restored = saved.read(&mut saved_under)
                && saved_under == [page_crc]
                && self.agent.restore(|words| saved.read(words)).is_ok();
            if !is_restored {
                warn!("the saved state is of another page or firmware");
                self.agent.reset(page.start).map_err(refuse)?;
            }
        }
        let boot = self.sealer.boot().saturating_add(1);
        info!("agent {} starts for the {}. time, in round {}", self.agent.id(), boot, self.agent.round());
        Ok(())
    }

    /// Writes the agent's state to storage, tied to its page; `false` where it was not taken.
    #[inline(never)]
    pub(crate) fn save<F: NorFlash>(&self, storage: &mut BoardStorage<F>, page_crc: u32) -> bool {
        let mut draft = storage.draft();
        let written = draft.write(&[page_crc]).and_then(|()| self.agent.save(|words| draft.write(words)));
        written.and_then(|()| draft.commit()).is_ok()
    }

    /// Writes a packet with the words of the agent's state from number `from` on, as many as fit.
    #[inline(never)]
    pub(crate) fn tell(&self, from: u32, out: &mut [u8]) -> Option<usize> {
        let start = packet::write_state_header(from, out).ok()?;
        let mut room = out[start..].as_chunks_mut().0.iter_mut();
        let (mut number, mut told) = (0, 0);
        let Ok(()) = self.agent.save(|words| {
            for word in words {
                if number >= from
                    && let Some(place) = room.next()
                {
                    *place = word.to_le_bytes();
                    told += place.len();
                }
                number += 1;
            }
            Ok::<_, Infallible>(())
        });
        Some(start + told)
    }

    /// Writes the next frame of this round to the start of `out`, sealed, if there is one.
    #[inline(never)]
    pub(crate) fn poll_frame(&mut self, out: &mut [u8]) -> Option<usize> {
        // What cannot be written is as good as lost: buffers were made for the longest frame.
        let Some(key) = &self.key else {
            return self.agent.poll_frame(out).ok().flatten();
        };
        let mut frame = [0; FRAME];
        let length = self.agent.poll_frame(&mut frame).ok().flatten()?;
        self.sealer.seal(key, &frame[..length], out).ok()
    }

    /// Hears a frame as it came; `false` where it was not taken.
    #[inline(never)]
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> bool {
        let mut frame = [0; FRAME];
        let frame = match &self.key {
            None => bytes,
            Some(key) => match self.opener.open(key, bytes, &mut frame) {
                Ok(opened) => opened.frame,
                Err(_) => return false,
            },
        };
        !matches!(self.agent.receive(frame), Received::Refused(_))
    }

    /// Whether every sender of the schedule was heard in this round.
    #[inline(never)]
    pub(crate) fn is_complete(&self, schedule: &impl Schedule) -> bool {
        self.agent.is_complete(schedule)
    }

    /// Ends the round, on the air's beat or alone.
    #[inline(never)]
    pub(crate) fn end_round(&mut self, is_on_beat: bool) -> Report {
        if is_on_beat { self.agent.end_on_beat() } else { self.agent.end_round() }
    }

    pub(crate) fn round(&self) -> u32 {
        self.agent.round()
    }

    /// A digest of the agent's state.
    pub(crate) fn digest(&self) -> u32 {
        self.agent.digest()
    }

    /// The upper variable.
    pub(crate) fn x<'b>(&'b self, page: &Page<'_>) -> &'b [f32] {
        &self.agent.decision()[..page.problem.shape().x]
    }
}

/// What is wrong with a page whose agent cannot be made.
fn refuse(error: agent::Error) -> Error {
    error!("the agent cannot be made: {}", error);
    match error {
        agent::Error::TooLarge { .. } | agent::Error::Identity => Error::TooLarge,
        _ => Error::Malformed,
    }
}
