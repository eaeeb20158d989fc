//! What a board keeps in flash across restarts.
//!
//! ```text
//!   sector 0, 1   boots, appended; when one sector is full, the other is erased and used
//!   half A, B     the agent's state, alternating: length, number, checksum, words
//! ```
//!
//! A power cut at any time leaves the previous state intact: the header that makes a state valid is written last.

mod boots;

pub use boots::KeyBoots;

use core::ops::Range;
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::fnv;
use fabswarm_shared::wire::seal::StorageFault;

const HEADER_BYTES: usize = 12;
/// Flash is written in words, the smallest unit that all boards support.
const WORD_BYTES: usize = 4;
const BLANK: u32 = u32::MAX;

/// Replaces the provisioning page of a board. The default is a board whose page only a flasher can write.
pub trait PageFlash {
    /// Whether it can.
    const CAN_WRITE: bool = false;

    /// Erases the page. Returns whether that succeeded.
    fn erase_page(&mut self) -> bool {
        false
    }

    /// Writes bytes at an offset into the erased page, in whole words. Returns whether that succeeded.
    fn write_page(&mut self, _offset: u32, _bytes: &[u8]) -> bool {
        false
    }
}

/// Stores a board's boots and its agent's state in flash.
#[derive(Debug)]
pub struct BoardStorage<F> {
    flash: F,
    newest: Option<StateRecord>,
}

/// A state being written; it becomes valid with [`commit`](Self::commit).
#[derive(Debug)]
pub struct StateDraft<'a, F> {
    storage: &'a mut BoardStorage<F>,
    half: u32,
    number: u32,
    from: u32,
    /// End of what was written.
    end: u32,
    /// End of what was erased.
    erased: u32,
    sum: u32,
}

impl<F: NorFlash> StateDraft<'_, F> {
    /// Appends words.
    ///
    /// # Errors
    /// [`StorageFault`] if the flash is too small or fails.
    pub fn write(&mut self, words: &[u32]) -> Result<(), StorageFault> {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let end = self.end + bytes.len() as u32;
        if end > self.from + self.storage.half_bytes() {
            return Err(StorageFault);
        }
        if end > self.erased {
            let erased = end.next_multiple_of(F::ERASE_SIZE as u32);
            self.storage.flash.erase(self.erased, erased).map_err(|_| StorageFault)?;
            self.erased = erased;
        }
        self.storage.flash.write(self.end, bytes).map_err(|_| StorageFault)?;
        self.sum = checksum(self.sum, words);
        self.end = end;
        Ok(())
    }

    /// Makes the state valid. Returns once it would survive a power cut.
    ///
    /// # Errors
    /// [`StorageFault`] if the flash fails.
    pub fn commit(mut self) -> Result<(), StorageFault> {
        // The header needs an erased sector even if the state has no words.
        self.write(&[])?;
        let Self { storage, half, number, from, end, sum, .. } = self;
        let length = end - from - HEADER_BYTES as u32;
        let header = [length, number, checksum(sum, &[length, number])];
        storage.flash.write(from, bytemuck::cast_slice(&header)).map_err(|_| StorageFault)?;
        storage.newest = Some(StateRecord { half, length, number });
        Ok(())
    }
}

/// A saved state being read.
#[derive(Debug)]
pub struct SavedState<'a, F> {
    flash: &'a mut F,
    words: Range<u32>,
}

impl<F: NorFlash> SavedState<'_, F> {
    /// Fills `words` with the next words of the state. Returns `false` if fewer are left or they cannot be read.
    pub fn read(&mut self, words: &mut [u32]) -> bool {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
        let is_there = bytes.len() <= self.words.len() && self.flash.read(self.words.start, bytes).is_ok();
        if is_there {
            self.words.start += bytes.len() as u32;
        }
        is_there
    }
}

/// A valid state.
#[derive(Clone, Copy, Debug)]
struct StateRecord {
    half: u32,
    length: u32,
    number: u32,
}

impl<F: PageFlash> BoardStorage<F> {
    /// Writes bytes of a new page; at offset 0 the old one is erased. Returns whether that succeeded.
    pub(crate) fn write_page(&mut self, offset: u32, bytes: &[u8]) -> bool {
        (offset > 0 || self.flash.erase_page()) && self.flash.write_page(offset, bytes)
    }
}

impl<F: NorFlash> BoardStorage<F> {
    /// Finds the newest state in `flash`.
    pub fn new(flash: F) -> Self {
        const { assert!(F::WRITE_SIZE <= WORD_BYTES && F::READ_SIZE <= WORD_BYTES) };
        let mut storage = Self { flash, newest: None };
        let found = [0, 1].map(|half| storage.record(half));
        storage.newest = found.into_iter().flatten().max_by_key(|record| record.number);
        storage
    }

    /// Returns a reader of the state saved last, if there is one.
    pub fn saved(&mut self) -> Option<SavedState<'_, F>> {
        let StateRecord { half, length, .. } = self.newest?;
        let at = self.half_at(half) + HEADER_BYTES as u32;
        Some(SavedState { flash: &mut self.flash, words: at..at + length })
    }

    /// Begins to save a state. The previous one stays valid until this one is [committed](StateDraft::commit).
    pub fn draft(&mut self) -> StateDraft<'_, F> {
        let (half, number) = match self.newest {
            Some(newest) => (1 - newest.half, newest.number.wrapping_add(1)),
            None => (0, 0),
        };
        let from = self.half_at(half);
        StateDraft {
            half,
            number,
            from,
            end: from + HEADER_BYTES as u32,
            erased: from,
            sum: fnv::BASIS,
            storage: self,
        }
    }

    /// Invalidates all saved states. Errors of the flash are ignored: there is nothing left to try.
    pub fn invalidate(&mut self) {
        if self.newest.take().is_some() {
            for half in [0, 1] {
                let header = self.half_at(half);
                let _ = self.flash.erase(header, header + F::ERASE_SIZE as u32);
            }
        }
    }

    fn half_bytes(&self) -> u32 {
        let sectors = self.flash.capacity() / F::ERASE_SIZE;
        (sectors.saturating_sub(2) / 2 * F::ERASE_SIZE) as u32
    }

    fn half_at(&self, half: u32) -> u32 {
        2 * F::ERASE_SIZE as u32 + half * self.half_bytes()
    }

    /// Returns the record in a half, if its checksum is right.
    fn record(&mut self, half: u32) -> Option<StateRecord> {
        let at = self.half_at(half);
        let [length, number, sum] = [0, 1, 2].map(|word| self.word(at + word * WORD_BYTES as u32));
        let (length, number, sum) = (length?, number?, sum?);
        // Blank flash reads as a length that would overflow below.
        if length > self.half_bytes().saturating_sub(HEADER_BYTES as u32)
            || !length.is_multiple_of(WORD_BYTES as u32)
        {
            return None;
        }
        let first = at + HEADER_BYTES as u32;
        let found = (first..first + length)
            .step_by(WORD_BYTES)
            .fold(fnv::BASIS, |sum, at| checksum(sum, &[self.word(at).unwrap_or(BLANK)]));
        (checksum(found, &[length, number]) == sum).then_some(StateRecord { half, length, number })
    }

    fn word(&mut self, at: u32) -> Option<u32> {
        let mut word = [0; WORD_BYTES];
        self.flash.read(at, &mut word).ok()?;
        Some(u32::from_le_bytes(word))
    }
}

/// FNV-1a over words: detects a torn or faded state in few instructions.
fn checksum(sum: u32, words: &[u32]) -> u32 {
    words.iter().fold(sum, |hash, &word| fnv::add(hash, word))
}

#[cfg(test)]
mod tests;
