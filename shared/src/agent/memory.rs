//! An agent's state as bytes, for a restart that forgets nothing.
//!
//! What is saved must be the very state the agent stopped in. An older one would take its running sum back in time, and
//! everybody would collect the difference again: then start without it, and join as one that lost its memory.

use super::peers::Peers;
use super::{Agent, Error, MemberSet};
use crate::ledger::Arithmetic;
use crate::problem::Problem;
use crate::wire::payload::{Decoder, Encoder};

/// Changes with the layout.
const VERSION: u32 = 0xfab0_0001;

/// Writes words one after the other.
struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn word(&mut self, word: u32) -> Result<(), Error> {
        let place = self.out.get_mut(self.at..self.at + 4).ok_or(Error::BufferTooSmall)?;
        place.copy_from_slice(&word.to_le_bytes());
        self.at += 4;
        Ok(())
    }

    fn words(&mut self, words: impl IntoIterator<Item = u32>) -> Result<(), Error> {
        words.into_iter().try_for_each(|word| self.word(word))
    }
}

/// Reads them again.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn word(&mut self) -> Result<u32, Error> {
        let (word, rest) = self.rest.split_first_chunk().ok_or(Error::Memory)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*word))
    }

    fn fill<T>(&mut self, places: &mut [T], convert: impl Fn(u32) -> T) -> Result<(), Error> {
        places.iter_mut().try_for_each(|place| {
            *place = convert(self.word()?);
            Ok(())
        })
    }
}

impl<P, A, L, const WORDS: usize> Agent<P, A, L, WORDS>
where
    P: Problem<f32>,
    A: Arithmetic,
    L: Peers<A, WORDS>,
{
    /// What a saved state must agree with.
    fn signature(&self) -> [u32; 6] {
        [
            VERSION,
            u32::from(self.config.id),
            self.shape.x as u32,
            self.shape.y as u32,
            u32::from(self.shape.x_is_local),
            u32::from(A::IS_MODULAR),
        ]
    }

    /// Writes the state to the start of `out` and answers its length.
    ///
    /// # Errors
    /// Where `out` is too small.
    pub fn save(&self, out: &mut [u8]) -> Result<usize, Error> {
        let words = self.exchanged();
        let bits = |word: &A::Word| A::to_wire(*word) as u32;
        let mut writer = Writer { out, at: 0 };
        writer.words(self.signature())?;
        writer.words([self.round, self.epoch, self.heard_epoch.unwrap_or(0), self.announce_until])?;
        let mut set = [0; MemberSet::BYTES];
        let held = self.members.as_bytes();
        set[..held.len()].copy_from_slice(held);
        writer.words(set.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)))?;
        writer.words(self.decision().iter().chain(self.gradient()).map(|word| word.to_bits()))?;
        for state in [&self.t, &self.d, &self.sigma, &self.before] {
            writer.words(state[..words].iter().map(bits))?;
        }
        for &carry in &self.carry[..words] {
            let carry = A::carry_to_bits(carry) as u64;
            writer.words([carry as u32, (carry >> 32) as u32])?;
        }
        writer.word(self.peers.as_slice().len() as u32)?;
        for peer in self.peers.as_slice() {
            let (is_taken, round) = (u32::from(peer.taken_round.is_some()), peer.taken_round.unwrap_or(0));
            writer.words([u32::from(peer.sender), is_taken, round, peer.heard_at])?;
            writer.words(peer.rho[..words].iter().map(bits))?;
        }
        Ok(writer.at)
    }

    /// Goes on from a saved state. Call it before anything else.
    ///
    /// # Errors
    /// Where the bytes are no state of this agent; start it anew then.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let words = self.exchanged();
        let packed = self.shape.words();
        let word = |bits: u32| A::from_wire(bits as i32);
        let mut reader = Reader { rest: bytes };
        for expected in self.signature() {
            if reader.word()? != expected {
                return Err(Error::Memory);
            }
        }
        self.round = reader.word()?;
        self.epoch = reader.word()?;
        let heard_epoch = reader.word()?;
        self.heard_epoch = (heard_epoch > 0).then_some(heard_epoch);
        self.announce_until = reader.word()?;
        let mut set = [0u32; MemberSet::BYTES / 4];
        reader.fill(&mut set, |bits| bits)?;
        let mut bytes = [0; MemberSet::BYTES];
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(set) {
            *bytes = word.to_le_bytes();
        }
        self.members = MemberSet::from_bytes(&bytes).ok_or(Error::Memory)?;
        reader.fill(&mut self.v[..packed], f32::from_bits)?;
        reader.fill(&mut self.gradient[..packed], f32::from_bits)?;
        for state in [&mut self.t, &mut self.d, &mut self.sigma, &mut self.before] {
            reader.fill(&mut state[..words], word)?;
        }
        for carry in &mut self.carry[..words] {
            let (low, high) = (reader.word()?, reader.word()?);
            *carry = A::carry_from_bits((u64::from(high) << 32 | u64::from(low)) as i64);
        }
        for _ in 0..reader.word()? {
            let sender = u16::try_from(reader.word()?).map_err(|_| Error::Memory)?;
            let at = match self.peers.find(sender) {
                Ok(at) => at,
                Err(at) if self.peers.insert(at, sender) => at,
                Err(_) => return Err(Error::Memory),
            };
            let peer = &mut self.peers.as_mut_slice()[at];
            peer.reset();
            let (is_taken, round) = (reader.word()?, reader.word()?);
            peer.taken_round = (is_taken == 1).then_some(round);
            peer.heard_at = reader.word()?;
            reader.fill(&mut peer.rho[..words], word)?;
            peer.decoder = Decoder::new();
        }
        if !reader.rest.is_empty() || !self.decision().iter().all(|word| word.is_finite()) {
            return Err(Error::Memory);
        }
        self.encoder = Encoder::new(self.config.width, self.config.id);
        self.giving = self.giving_now();
        self.outbox.has_data = true;
        Ok(())
    }
}
