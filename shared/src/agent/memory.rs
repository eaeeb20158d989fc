//! An agent's state as words, for a restart that forgets nothing.
//!
//! The saved state must be the very state the agent stopped in. An older one would take its running sum back in time, and
//! everybody would collect the difference again: then start without it, and join as one that lost its memory.

use super::peers::Peers;
use super::state_field::{NUMBERS, PEER_NUMBERS, SIGNATURE, VERSION};
use super::{Agent, Error, MemberSet};
use crate::fnv;
use crate::problem::Problem;
use bytemuck::{cast_slice, cast_slice_mut};
use core::ops::ControlFlow;

/// Gives the words of a whole saved state, for [`Agent::restore`].
pub fn read_from(mut saved: &[u32]) -> impl FnMut(&mut [u32]) -> bool {
    move |out| {
        let Some((words, rest)) = saved.split_at_checked(out.len()) else { return false };
        out.copy_from_slice(words);
        saved = rest;
        true
    }
}

impl<P: Problem<f32>, L: Peers<WORDS>, const WORDS: usize> Agent<P, L, WORDS> {
    /// The constants that a saved state must agree with.
    fn signature(&self) -> [u32; SIGNATURE.len()] {
        let shape = &self.ledger.shape;
        let id = u32::from(self.config.id);
        // The running sum is modular.
        [VERSION, id, shape.x as u32, shape.y as u32, u32::from(shape.x_is_local), 1]
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
        write(&self.signature())?;
        write(&self.membership.to_words())?;
        write(&self.members().to_words())?;
        for vector in self.ledger.vectors() {
            write(vector)?;
        }
        let peers = &self.ledger.peers;
        write(&[peers.count() as u32])?;
        for peer in peers.in_order() {
            let (is_taken, round) = (u32::from(peer.taken_round.is_some()), peer.taken_round.unwrap_or(0));
            let numbers: [u32; PEER_NUMBERS.len()] = [peer.sender.into(), is_taken, round, peer.taken_at];
            write(&numbers)?;
            write(cast_slice(&peer.rho[..self.ledger.words()]))?;
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
        let mut signature = [0; SIGNATURE.len()];
        fill(&mut signature)?;
        if signature != self.signature() {
            return Err(Error::Memory);
        }
        let (mut numbers, mut members) = ([0; NUMBERS.len()], [0; MemberSet::WORDS]);
        fill(&mut numbers)?;
        fill(&mut members)?;
        self.membership.restore(&self.config, numbers, MemberSet::from_words(members))?;
        self.ledger.try_fill(&mut fill)?;
        let words = self.ledger.words();
        let mut peers = [0];
        fill(&mut peers)?;
        for _ in 0..peers[0] {
            let mut numbers = [0; PEER_NUMBERS.len()];
            fill(&mut numbers)?;
            let [sender, is_taken, round, taken_at] = numbers;
            let sender = u16::try_from(sender).map_err(|_| Error::Memory)?;
            let peer = self.ledger.restore_peer(&self.config, sender).ok_or(Error::Memory)?;
            peer.taken_round = (is_taken == 1).then_some(round);
            peer.taken_at = taken_at;
            fill(cast_slice_mut(&mut peer.rho[..words]))?;
        }
        if fill(&mut [0]).is_ok() || !self.decision().iter().all(|word| word.is_finite()) {
            return Err(Error::Memory);
        }
        self.ledger.resume(&self.config, &self.membership.members);
        Ok(())
    }

    /// A digest of round, epoch, decision, gradient, trackers, running sum and the direction of its descent. What it leaves
    /// out (remainders, what was taken of others, members) shows in one of these within a few rounds; [`Agent::save`] has all
    /// of it.
    pub fn digest(&self) -> u32 {
        let header = [self.round()].into_iter().chain(self.epoch().to_words());
        let [decision, gradient, accumulator, t, _, sigma, _] = self.ledger.vectors();
        let vectors = [decision, gradient, t, sigma, accumulator];
        digest_of(header.chain(vectors.into_iter().flatten().copied()))
    }
}

/// FNV-1a over words, each followed by a rotation so that high bits reach low ones, with a final mix: two states that differ in
/// one bit differ in their digests.
#[inline]
fn digest_of(words: impl Iterator<Item = u32>) -> u32 {
    let hash = words.fold(fnv::BASIS, |hash, word| fnv::add(hash, word).rotate_left(5));
    (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b)
}
