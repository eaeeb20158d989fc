//! A board's storage in flash, across restarts.
//!
//! ```text
//!   sector 0, 1   boots, appended; when one sector is full, the other is erased and used
//!   the others    a ring of the agent's states: length, number, checksum, words
//! ```
//!
//! A state begins a sector, or follows the one before it where it fits what is left of that sector. A power cut at any time leaves
//! the previous state intact: the header that makes a state valid is written last. All sectors of the ring wear alike.

mod boots;

pub use boots::KeyBoots;

use core::ops::Range;
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::fnv;
use fabswarm_shared::wire::seal::StorageFault;

const WORD_BYTES: usize = 4;
/// Flash is written in units of two words, each once: all boards can do that.
const UNIT_WORDS: usize = 2;
const UNIT_BYTES: usize = UNIT_WORDS * WORD_BYTES;
/// Length, number, checksum, and nothing.
const HEADER_BYTES: usize = 2 * UNIT_BYTES;
/// Sectors of the boots, before the ring.
const BOOT_SECTORS: u32 = 2;
const BLANK: u32 = u32::MAX;

/// Replaces the provisioning record of a board. The default is a board whose page only a flasher can write.
pub trait PageFlash {
    /// Whether it can.
    const CAN_WRITE: bool = false;

    /// Erases the page. Returns whether that succeeded.
    fn erase_page(&mut self) -> bool {
        false
    }

    /// Writes bytes at an offset into the erased page, in whole units of 8 bytes. Returns whether that succeeded.
    fn write_page(&mut self, _offset: u32, _bytes: &[u8]) -> bool {
        false
    }
}

/// Stores a board's boots and its agent's state in flash.
#[derive(Debug)]
pub struct BoardStorage<F> {
    flash: F,
    newest: Option<StateRecord>,
    is_page_erased: bool,
}

/// A state being written; it becomes valid with [`commit`](Self::commit).
#[derive(Debug)]
pub struct StateDraft<'a, F> {
    storage: &'a mut BoardStorage<F>,
    number: u32,
    from: u32,
    /// Where the draft must end.
    limit: u32,
    /// End of what was written.
    end: u32,
    /// End of what was erased.
    erased: u32,
    /// The first word of a unit that is not whole yet.
    pending: Option<u32>,
    words: u32,
    sum: u32,
}

impl<F: NorFlash> StateDraft<'_, F> {
    /// Appends words.
    ///
    /// # Errors
    /// [`StorageFault`] if the flash is too small or fails.
    pub fn write(&mut self, mut words: &[u32]) -> Result<(), StorageFault> {
        self.sum = checksum(self.sum, words);
        self.words += words.len() as u32;
        if let (Some(first), Some((&second, rest))) = (self.pending, words.split_first()) {
            self.put(&[first, second])?;
            (self.pending, words) = (None, rest);
        }
        let (units, rest) = words.split_at(words.len() / UNIT_WORDS * UNIT_WORDS);
        self.put(units)?;
        self.pending = rest.first().copied().or(self.pending);
        Ok(())
    }

    fn put(&mut self, words: &[u32]) -> Result<(), StorageFault> {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let end = self.end + bytes.len() as u32;
        if end > self.limit {
            return Err(StorageFault);
        }
        if end > self.erased {
            let erased = end.next_multiple_of(F::ERASE_SIZE as u32);
            self.storage.flash.erase(self.erased, erased).map_err(|_| StorageFault)?;
            self.erased = erased;
        }
        self.storage.flash.write(self.end, bytes).map_err(|_| StorageFault)?;
        self.end = end;
        Ok(())
    }

    /// Makes the state valid. Returns once it would survive a power cut.
    ///
    /// # Errors
    /// [`StorageFault`] if the flash fails, or does not hold what was written: some flash ignores writes silently.
    pub fn commit(mut self) -> Result<(), StorageFault> {
        // The header needs an erased sector even if the state has no words.
        let last = self.pending.take().map(|word| [word, BLANK]);
        self.put(last.as_ref().map_or(&[][..], |unit| &unit[..]))?;
        let Self { storage, number, from, words, sum, .. } = self;
        let length = words * WORD_BYTES as u32;
        let header = [length, number, checksum(sum, &[length, number]), BLANK];
        storage.flash.write(from, bytemuck::cast_slice(&header)).map_err(|_| StorageFault)?;
        let written =
            storage.record(from).filter(|record| (record.length, record.number) == (length, number));
        storage.newest = Some(written.ok_or(StorageFault)?);
        Ok(())
    }
}

/// A saved state being read.
pub(crate) struct SavedState<'a, F> {
    flash: &'a mut F,
    words: Range<u32>,
}

impl<F: NorFlash> SavedState<'_, F> {
    /// Fills `words` with the next words of the state. Returns `false` if fewer are left or they cannot be read.
    pub(crate) fn read(&mut self, words: &mut [u32]) -> bool {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
        let is_there = bytes.len() <= self.words.len() && self.flash.read(self.words.start, bytes).is_ok();
        if is_there {
            self.words.start += bytes.len() as u32;
        }
        is_there
    }
}

#[derive(Clone, Copy, Debug)]
struct StateRecord {
    at: u32,
    length: u32,
    number: u32,
}

impl StateRecord {
    /// Where the next one may begin.
    const fn end(&self) -> u32 {
        self.at + record_bytes(self.length)
    }
}

impl<F: PageFlash> BoardStorage<F> {
    /// Erases the page. Returns whether that succeeded.
    pub(crate) fn erase_page(&mut self) -> bool {
        self.is_page_erased = self.flash.erase_page();
        self.is_page_erased
    }

    /// Writes bytes of a new page; at offset 0 the old one is erased. Returns whether that succeeded.
    pub(crate) fn write_page(&mut self, offset: u32, bytes: &[u8]) -> bool {
        let is_erased = core::mem::take(&mut self.is_page_erased);
        (offset > 0 || is_erased || self.flash.erase_page()) && self.flash.write_page(offset, bytes)
    }
}

impl<F: NorFlash> BoardStorage<F> {
    /// Finds the newest state in `flash`.
    pub fn new(flash: F) -> Self {
        const { assert!(UNIT_BYTES.is_multiple_of(F::WRITE_SIZE) && F::READ_SIZE <= WORD_BYTES) };
        let mut storage = Self { flash, newest: None, is_page_erased: false };
        for sector in storage.ring().step_by(F::ERASE_SIZE) {
            let mut at = sector;
            while let Some(record) = storage.record(at) {
                if storage.newest.is_none_or(|newest| record.number >= newest.number) {
                    storage.newest = Some(record);
                }
                at = record.end();
            }
        }
        storage
    }

    /// Returns a reader of the state saved last, if there is one.
    pub(crate) fn saved(&mut self) -> Option<SavedState<'_, F>> {
        let StateRecord { at, length, .. } = self.newest?;
        let from = at + HEADER_BYTES as u32;
        Some(SavedState { flash: &mut self.flash, words: from..from + length })
    }

    /// Begins to save a state of `words` words. The previous one stays valid until this one is [committed](StateDraft::commit).
    pub fn draft(&mut self, words: usize) -> StateDraft<'_, F> {
        let (ring, sector) = (self.ring(), F::ERASE_SIZE as u32);
        let needed = record_bytes((WORD_BYTES * words) as u32);
        let number = self.newest.map_or(0, |newest| newest.number.wrapping_add(1));
        let (from, limit, erased) = match self.newest {
            None => (ring.start, ring.end, ring.start),
            Some(newest) => {
                let (behind, begun) = (newest.end(), newest.at / sector * sector);
                let next = behind.next_multiple_of(sector);
                // A power cut may have left part of a state there.
                if behind + needed <= begun + sector && self.is_blank(behind..behind + needed) {
                    (behind, next, next)
                } else if ring.end.saturating_sub(next) >= needed {
                    (next, ring.end, next)
                } else {
                    // Begins the ring again, and must end before the sector of the newest.
                    (ring.start, begun, ring.start)
                }
            }
        };
        StateDraft {
            number,
            from,
            limit,
            end: from + HEADER_BYTES as u32,
            erased,
            pending: None,
            words: 0,
            sum: fnv::BASIS,
            storage: self,
        }
    }

    /// Invalidates all saved states. Errors of the flash are ignored: there is nothing left to try.
    pub(crate) fn invalidate(&mut self) {
        let Some(newest) = self.newest.take() else { return };
        let size = F::ERASE_SIZE as u32;
        let last = newest.at / size * size;
        // The newest goes last: after a power cut an older one would count.
        for at in self.ring().step_by(F::ERASE_SIZE).filter(|&at| at != last).chain([last]) {
            if self.record(at).is_some() {
                let _ = self.flash.erase(at, at + size);
            }
        }
    }

    /// The sectors of states.
    fn ring(&self) -> Range<u32> {
        let sectors = (self.flash.capacity() / F::ERASE_SIZE) as u32;
        BOOT_SECTORS * F::ERASE_SIZE as u32..sectors.max(BOOT_SECTORS) * F::ERASE_SIZE as u32
    }

    /// Returns the record that begins at `at`, if its checksum is right.
    fn record(&mut self, at: u32) -> Option<StateRecord> {
        if at + HEADER_BYTES as u32 > self.ring().end {
            return None;
        }
        let [length, number, sum] = [0, 1, 2].map(|word| self.word(at + word * WORD_BYTES as u32));
        let (length, number, sum) = (length?, number?, sum?);
        let first = at + HEADER_BYTES as u32;
        // Blank flash reads as a length that would overflow below.
        if length > self.ring().end - first || !length.is_multiple_of(WORD_BYTES as u32) {
            return None;
        }
        let found = (first..first + length)
            .step_by(WORD_BYTES)
            .try_fold(fnv::BASIS, |sum, at| Some(checksum(sum, &[self.word(at)?])))?;
        (checksum(found, &[length, number]) == sum).then_some(StateRecord { at, length, number })
    }

    fn is_blank(&mut self, bytes: Range<u32>) -> bool {
        bytes.step_by(WORD_BYTES).all(|at| self.word(at) == Some(BLANK))
    }

    fn word(&mut self, at: u32) -> Option<u32> {
        let mut word = [0; WORD_BYTES];
        self.flash.read(at, &mut word).ok()?;
        Some(u32::from_le_bytes(word))
    }
}

/// Bytes that a state of `bytes` bytes takes.
const fn record_bytes(bytes: u32) -> u32 {
    HEADER_BYTES as u32 + bytes.next_multiple_of(UNIT_BYTES as u32)
}

/// FNV-1a over words: detects a torn or faded state in few instructions.
fn checksum(sum: u32, words: &[u32]) -> u32 {
    words.iter().fold(sum, |hash, &word| fnv::add(hash, word))
}

#[cfg(test)]
mod tests;
