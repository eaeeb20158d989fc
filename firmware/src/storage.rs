//! What a board remembers over a restart, in flash.
//!
//! ```text
//!   sector 0, 1   boots: eight bytes each, appended; when a sector is full, the other is erased and goes on
//!   half A, B     the agent's state, in turn: length, number, checksum, bytes
//! ```
//!
//! A power cut at any time leaves what was stored before: the header that makes a state count is written last.

use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::wire::seal::{self, StorageFault};

const BOOT_BYTES: usize = 8;
const HEADER_BYTES: usize = 12;
/// Flash is written word by word, the finest that all boards know.
const WORD_BYTES: usize = 4;
const BLANK: u32 = u32::MAX;

/// A board's memory over restarts.
#[derive(Debug)]
pub struct Storage<F> {
    flash: F,
    newest: Option<Record>,
}

/// A state that counts.
#[derive(Clone, Copy, Debug)]
struct Record {
    half: u32,
    length: u32,
    number: u32,
}

impl<F: NorFlash> Storage<F> {
    /// Looks for what earlier boots left in `flash`.
    pub fn new(flash: F) -> Self {
        const { assert!(F::WRITE_SIZE <= WORD_BYTES && F::READ_SIZE <= WORD_BYTES) };
        let mut storage = Self { flash, newest: None };
        let found = [0, 1].map(|half| storage.record(half));
        storage.newest = found.into_iter().flatten().max_by_key(|record| record.number);
        storage
    }

    /// Reads the state saved last into the start of `out` and returns its length.
    pub fn load(&mut self, out: &mut [u8]) -> Option<usize> {
        let Record { half, length, .. } = self.newest?;
        let state = out.get_mut(..length as usize)?;
        let from = self.half_at(half) + HEADER_BYTES as u32;
        self.flash.read(from, state).ok()?;
        Some(state.len())
    }

    /// Saves a state, a whole number of words, and returns once it would survive a power cut.
    ///
    /// # Errors
    /// [`StorageFault`] where the flash is too small or did not take it; the state before it still counts.
    pub fn save(&mut self, state: &[u8]) -> Result<(), StorageFault> {
        let (half, number) = match self.newest {
            Some(newest) => (1 - newest.half, newest.number.wrapping_add(1)),
            None => (0, 0),
        };
        let room = self.half_bytes() as usize;
        let length = state.len();
        if HEADER_BYTES + length > room || !length.is_multiple_of(WORD_BYTES) {
            return Err(StorageFault);
        }
        let at = self.half_at(half);
        let end = at + (HEADER_BYTES + length).next_multiple_of(F::ERASE_SIZE) as u32;
        self.flash.erase(at, end).map_err(|_| StorageFault)?;
        self.flash.write(at + HEADER_BYTES as u32, state).map_err(|_| StorageFault)?;
        let record = Record { half, length: length as u32, number };
        let header = [record.length, number, checksum(record.length, number, words(state))];
        self.flash.write(at, header.map(u32::to_le_bytes).as_flattened()).map_err(|_| StorageFault)?;
        self.newest = Some(record);
        Ok(())
    }

    fn half_bytes(&self) -> u32 {
        let sectors = self.flash.capacity() / F::ERASE_SIZE;
        (sectors.saturating_sub(2) / 2 * F::ERASE_SIZE) as u32
    }

    fn half_at(&self, half: u32) -> u32 {
        2 * F::ERASE_SIZE as u32 + half * self.half_bytes()
    }

    /// The record in a half, if it is whole.
    fn record(&mut self, half: u32) -> Option<Record> {
        let at = self.half_at(half);
        let [length, number, sum] = [0, 1, 2].map(|word| self.word(at + word * WORD_BYTES as u32));
        let (length, number, sum) = (length?, number?, sum?);
        if length as usize + HEADER_BYTES > self.half_bytes() as usize {
            return None;
        }
        let first = at + HEADER_BYTES as u32;
        let state = (first..first + length).step_by(WORD_BYTES).map(|at| self.word(at).unwrap_or(BLANK));
        (checksum(length, number, state) == sum).then_some(Record { half, length, number })
    }

    fn word(&mut self, at: u32) -> Option<u32> {
        let mut word = [0; WORD_BYTES];
        self.flash.read(at, &mut word).ok()?;
        Some(u32::from_le_bytes(word))
    }

    /// Where boots are kept: every place in both sectors.
    fn boot_places() -> impl Iterator<Item = u32> {
        (0..2 * F::ERASE_SIZE as u32).step_by(BOOT_BYTES)
    }

    fn is_blank(&mut self, at: u32) -> bool {
        self.word(at) == Some(BLANK) && self.word(at + WORD_BYTES as u32) == Some(BLANK)
    }

    /// The boot at a place, if it was written to the end.
    fn boot_at(&mut self, at: u32) -> Result<Option<u32>, StorageFault> {
        let boot = self.word(at).ok_or(StorageFault)?;
        let twin = self.word(at + WORD_BYTES as u32).ok_or(StorageFault)?;
        Ok((twin == !boot).then_some(boot))
    }
}

impl<F: NorFlash> seal::Storage for Storage<F> {
    fn load(&mut self) -> Result<Option<u32>, StorageFault> {
        let mut last = None;
        for at in Self::boot_places() {
            last = last.max(self.boot_at(at)?);
        }
        Ok(last)
    }

    fn store(&mut self, boot: u32) -> Result<(), StorageFault> {
        // Behind the newest boot; a place that is not blank was spoiled by a power cut.
        let mut newest: Option<(u32, u32)> = None;
        for at in Self::boot_places() {
            if let Some(boot) = self.boot_at(at)? {
                newest = newest.max(Some((boot, at)));
            }
        }
        let sector = F::ERASE_SIZE as u32;
        let mut at = newest.map_or(0, |(_, at)| at + BOOT_BYTES as u32);
        while !at.is_multiple_of(sector) && !self.is_blank(at) {
            at += BOOT_BYTES as u32;
        }
        if at.is_multiple_of(sector) {
            at %= 2 * sector;
            self.flash.erase(at, at + sector).map_err(|_| StorageFault)?;
        }
        let entry = [boot, !boot].map(u32::to_le_bytes);
        self.flash.write(at, entry.as_flattened()).map_err(|_| StorageFault)
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(WORD_BYTES).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// FNV-1a over words: it must tell a whole state from a torn or faded one, in few instructions.
fn checksum(length: u32, number: u32, state: impl Iterator<Item = u32>) -> u32 {
    [length, number]
        .into_iter()
        .chain(state)
        .fold(0x811C_9DC5, |hash: u32, word| (hash ^ word).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests;
