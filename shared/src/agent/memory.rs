//! An agent's state as words, for a restart that forgets nothing.
//!
//! The saved state must be the very state the agent stopped in. An older one would take its running sum back in time, and
//! everybody would collect the difference again: then start without it, and join as one that lost its memory.

use super::peers::{Peers, Reception};
use super::{Agent, Epoch, Error, RoundSync, Rumour};
use crate::problem::Problem;
use crate::wire::payload::Encoder;
use bytemuck::{cast_slice, cast_slice_mut};
use core::ops::ControlFlow;

/// Changes with the layout.
pub(super) const VERSION: u32 = 0xfab0_0006;

/// Gives the words of a whole saved state, for [`Agent::restore`].
pub fn read_from(mut saved: &[u32]) -> impl FnMut(&mut [u32]) -> bool {
    move |out| {
        let Some((words, rest)) = saved.split_at_checked(out.len()) else { return false };
        out.copy_from_slice(words);
        saved = rest;
        true
    }
}

impl<P, L, const WORDS: usize> Agent<P, L, WORDS>
where
    P: Problem<f32>,
    L: Peers<WORDS>,
{
    /// The constants that a saved state must agree with.
    fn signature(&self) -> [u32; 6] {
        [
            VERSION,
            u32::from(self.config.id),
            self.shape.x as u32,
            self.shape.y as u32,
            u32::from(self.shape.x_is_local),
            // The running sum is modular.
            1,
        ]
    }

    /// Passes the state to `write`, some words at a time.
    ///
    /// # Errors
    /// The first error of `write`, which ends it.
    pub fn save<E>(&self, mut write: impl FnMut(&[u32]) -> Result<(), E>) -> Result<(), E> {
        let mut outcome = Ok(());
        // `outcome` has the error that ended it early.
        let _ = self.each_part(&mut |words| {
            outcome = write(words);
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        outcome
    }

    /// The state, part by part. One copy for all who write it: a microcontroller's flash is small.
    #[cfg_attr(microcontroller, inline(never))]
    fn each_part(&self, write: &mut dyn FnMut(&[u32]) -> ControlFlow<()>) -> ControlFlow<()> {
        let words = self.exchanged();
        write(&self.signature())?;
        write(&[self.round, self.announce_until])?;
        write(&self.epoch.to_words())?;
        write(&self.heard_epoch.unwrap_or_default().to_words())?;
        write(&self.members.to_words())?;
        write(cast_slice(self.decision()))?;
        write(cast_slice(self.gradient()))?;
        write(cast_slice(self.accumulator()))?;
        for state in [&self.t, &self.d, &self.sigma] {
            write(cast_slice(&state[..words]))?;
        }
        write(cast_slice(&self.carry[..words]))?;
        write(&[self.peers.len() as u32])?;
        for peer in self.peers.in_order() {
            let (is_taken, round) = (u32::from(peer.taken_round.is_some()), peer.taken_round.unwrap_or(0));
            write(&[u32::from(peer.sender), is_taken, round, peer.taken_at])?;
            write(cast_slice(&peer.rho[..words]))?;
        }
        ControlFlow::Continue(())
    }

    /// Continues from a saved state, which `read` returns in the order of [`Agent::save`] until it has no more words. Call it
    /// before anything else.
    ///
    /// Never restore a state older than the last one the agent sent frames from: its running sum would go back, and every
    /// receiver would collect the difference a second time. Where the newest state is lost, do not restore at all; with
    /// [`Config::boot`](super::Config::boot) above 1 the agent then joins as one without memory.
    ///
    /// # Errors
    /// [`Error::Memory`] if the words are not a state of this agent. Its state is then undefined: [`Agent::reset`] it.
    pub fn restore(&mut self, mut read: impl FnMut(&mut [u32]) -> bool) -> Result<(), Error> {
        let mut fill = |words: &mut [u32]| if read(words) { Ok(()) } else { Err(Error::Memory) };
        let words = self.exchanged();
        let packed = self.shape.words();
        let mut signature = [0; 6];
        fill(&mut signature)?;
        if signature != self.signature() {
            return Err(Error::Memory);
        }
        let mut header = [0; 2];
        fill(&mut header)?;
        [self.round, self.announce_until] = header;
        self.alone_since = self.round;
        let mut read_epoch = || {
            let mut words = [0; 3];
            fill(&mut words)?;
            Epoch::from_words(words).ok_or(Error::Memory)
        };
        self.epoch = read_epoch()?;
        self.heard_epoch = Some(read_epoch()?).filter(|&epoch| epoch != Epoch::NONE);
        for place in self.members.words_mut() {
            let mut word = [0];
            fill(&mut word)?;
            *place = word[0].to_le_bytes();
        }
        fill(cast_slice_mut(&mut self.v[..packed]))?;
        fill(cast_slice_mut(&mut self.gradient[..packed]))?;
        fill(cast_slice_mut(&mut self.accumulator[..packed]))?;
        for state in [&mut self.t, &mut self.d, &mut self.sigma] {
            fill(cast_slice_mut(&mut state[..words]))?;
        }
        fill(cast_slice_mut(&mut self.carry[..words]))?;
        let mut peers = [0];
        fill(&mut peers)?;
        for _ in 0..peers[0] {
            let mut header = [0; 4];
            fill(&mut header)?;
            let [sender, is_taken, round, taken_at] = header;
            let sender = u16::try_from(sender).map_err(|_| Error::Memory)?;
            let at = match self.peers.find(sender) {
                Ok(at) => at,
                Err(at) if self.peers.insert(at, sender) => at,
                Err(_) => return Err(Error::Memory),
            };
            let (peer, reception) = self.peers.list(at);
            *reception = Reception::new();
            reception.decoder.forget();
            peer.reset();
            peer.taken_round = (is_taken == 1).then_some(round);
            peer.taken_at = taken_at;
            peer.is_collecting = self.config.links.collects_from(sender);
            fill(cast_slice_mut(&mut peer.rho[..words]))?;
        }
        if fill(&mut [0]).is_ok() || !self.decision().iter().all(|word| word.is_finite()) {
            return Err(Error::Memory);
        }
        self.encoder = Encoder::new(self.config.width, self.config.id);
        self.share_weights = self.current_share_weights();
        self.fill_frame();
        self.outbox.has_data = true;
        self.rumour = Rumour::NONE;
        // A lock-step swarm may have gone on since, unless there is nobody else in it.
        let is_alone = self.members.len() <= 1 && !self.is_joining();
        self.sync = match is_alone || !self.is_lock_step() {
            true => RoundSync::known(),
            false => RoundSync::pending(if self.is_joining() { None } else { Some(0) }),
        };
        Ok(())
    }
}
