//! The boots that a board has used, each under the number of its key.
//!
//! ```text
//!   entry: boot (4) │ key number (4) │ CRC-32 of both (4) │ 0 (4) │ mark (8) │ unused (8)
//! ```
//!
//! Entries are appended, so that they ascend in (key number, boot). An entry that is neither blank nor valid was spoiled by a power
//! cut or has faded: it counts as used. So does one that the flash cannot read, as half-written words of flash with error
//! correction. The mark of a sector's last entry says that the other sector was erased after this one
//! was full: what is in the other sector then is newer, even if none of it can be read.

use super::{BLANK, BoardStorage, WORD_BYTES};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    provisioning::{self, checksum},
    wire::seal::{BootStorage, StorageFault},
};

pub(super) const ENTRY_BYTES: usize = 32;
/// The part of an entry that is written at once; the mark behind it is written later.
const RECORD_BYTES: usize = 16;

#[derive(Clone, Copy)]
struct SectorScan {
    /// The newest readable entry: key number and boot.
    newest: Option<(u32, u32)>,
    /// Spoiled entries behind it.
    spoiled: u32,
    /// End of the last entry that is not blank, counted from the start of the sector.
    end: u32,
    is_marked: bool,
}

/// The content of both sectors.
struct BootLog {
    newest: Option<(u32, u32)>,
    /// Entries behind the newest readable one that cannot be read.
    spoiled: u32,
    /// Where the next entry goes. At the start of a sector, that sector must be erased first.
    at: u32,
}

/// The boots that a board has used under one key.
#[derive(Debug)]
pub struct KeyBoots<'a, F> {
    storage: &'a mut BoardStorage<F>,
    key_number: u32,
    floor: u32,
}

impl<F: NorFlash> BoardStorage<F> {
    /// Returns the boots used under the key with this number, none of them below `floor`. The floor of a key never falls.
    ///
    /// # Errors
    /// [`OldKey`](provisioning::Error::OldKey) if the board has used a key with a higher number,
    /// [`Storage`](provisioning::Error::Storage) if too much of the flash cannot be read.
    pub fn boots(&mut self, key_number: u32, floor: u32) -> Result<KeyBoots<'_, F>, provisioning::Error> {
        match self.boot_log() {
            Err(StorageFault) => Err(provisioning::Error::Storage),
            Ok(BootLog { newest: Some((used, _)), .. }) if used > key_number => {
                Err(provisioning::Error::OldKey { page: key_number, used })
            }
            Ok(_) => Ok(KeyBoots { storage: self, key_number, floor }),
        }
    }

    fn scan(&mut self, sector: u32) -> SectorScan {
        let mut scan = SectorScan { newest: None, spoiled: 0, end: 0, is_marked: false };
        for at in (0..F::ERASE_SIZE as u32).step_by(ENTRY_BYTES) {
            let first = sector * F::ERASE_SIZE as u32 + at;
            let mut mark = [BLANK; 2];
            scan.is_marked = !self.read(first + RECORD_BYTES as u32, &mut mark) || mark != [BLANK; 2];
            let mut words = [BLANK; RECORD_BYTES / WORD_BYTES];
            let is_readable = self.read(first, &mut words);
            if is_readable && words == [BLANK; RECORD_BYTES / WORD_BYTES] {
                continue;
            }
            scan.end = at + ENTRY_BYTES as u32;
            let [boot, key_number, sum, _] = words;
            if is_readable && record(key_number, boot)[2] == sum {
                (scan.newest, scan.spoiled) = (Some((key_number, boot)), 0);
            } else {
                scan.spoiled += 1;
            }
        }
        scan
    }

    /// Fills `words`. Returns whether the flash could read them.
    fn read(&mut self, at: u32, words: &mut [u32]) -> bool {
        self.flash.read(at, bytemuck::cast_slice_mut(words)).is_ok()
    }

    #[inline(never)]
    fn boot_log(&mut self) -> Result<BootLog, StorageFault> {
        let scans = [self.scan(0), self.scan(1)];
        let size = F::ERASE_SIZE as u32;
        let current = u32::from(scans[1].newest > scans[0].newest);
        let [first, second] = scans;
        let (here, other) = if current == 0 { (first, second) } else { (second, first) };
        // Nothing is readable. Only before the first sector was full do the places say how many boots there were.
        if here.newest.is_none() && (here.end == size || other.end > 0) {
            return Err(StorageFault);
        }
        let mut log = BootLog { newest: here.newest, spoiled: here.spoiled, at: current * size + here.end };
        // A readable entry in the other sector would be the newest if that sector were newer.
        if here.end == size && here.is_marked && other.newest.is_none() {
            log.spoiled += other.spoiled;
            log.at = (1 - current) * size + other.end;
        }
        log.at %= 2 * size;
        Ok(log)
    }

    /// Writes words and reads them back: some flash ignores writes silently.
    fn write_checked(&mut self, at: u32, words: &[u32]) -> Result<(), StorageFault> {
        self.flash.write(at, bytemuck::cast_slice(words)).map_err(|_| StorageFault)?;
        let mut places = words.iter().zip((at..).step_by(WORD_BYTES));
        let is_written = places.all(|(&word, at)| self.word(at) == Some(word));
        if is_written { Ok(()) } else { Err(StorageFault) }
    }
}

impl<F: NorFlash> BootStorage for KeyBoots<'_, F> {
    fn load(&mut self) -> Result<Option<u32>, StorageFault> {
        let log = self.storage.boot_log()?;
        let last = log.newest.filter(|&(key_number, _)| key_number == self.key_number).map(|(_, boot)| boot);
        if last.is_none() && log.spoiled == 0 {
            return Ok(None);
        }
        // A spoiled entry may have been the first one under a raised floor.
        let known = last.unwrap_or(0).max(self.floor.saturating_sub(1));
        Ok(Some(known.saturating_add(log.spoiled)))
    }

    fn store(&mut self, boot: u32) -> Result<(), StorageFault> {
        let BootLog { at, .. } = self.storage.boot_log()?;
        let size = F::ERASE_SIZE as u32;
        if at.is_multiple_of(size) {
            self.storage.flash.erase(at, at + size).map_err(|_| StorageFault)?;
            // The end of the other sector. A power cut before this leaves a sector whose erasure may be incomplete.
            let mark = (at + size) % (2 * size) + size - (ENTRY_BYTES - RECORD_BYTES) as u32;
            if [mark, mark + WORD_BYTES as u32].iter().all(|&at| self.storage.word(at) == Some(BLANK)) {
                self.storage.write_checked(mark, &[0, 0])?;
            }
        }
        self.storage.write_checked(at, &record(self.key_number, boot))
    }
}

fn record(key_number: u32, boot: u32) -> [u32; RECORD_BYTES / WORD_BYTES] {
    let numbers = [boot, key_number];
    [boot, key_number, checksum(bytemuck::bytes_of(&numbers), &[]), 0]
}
