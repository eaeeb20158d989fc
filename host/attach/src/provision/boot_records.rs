//! The boots that a board has used, as its firmware stores them in flash (`firmware/src/storage/boots.rs`).

use fabswarm_shared::provisioning::checksum;

/// Boot, key number, CRC-32 of both, 0; a mark and unused bytes.
const ENTRY_BYTES: usize = 32;
const RECORD_BYTES: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct BootRecords {
    /// Key numbers and boots that can be read.
    records: Vec<(u32, u32)>,
    /// Entries that cannot: each counts as used, under whatever key.
    spoiled: u32,
    pub(crate) newest_key: Option<u32>,
}

impl BootRecords {
    pub(crate) fn read(flash: &[u8]) -> Self {
        let mut found = Self::default();
        for entry in flash.as_chunks::<ENTRY_BYTES>().0 {
            let record = &entry[..RECORD_BYTES];
            if record.iter().all(|&byte| byte == 0xFF) {
                continue;
            }
            let [boot, key_number, sum] =
                [0, 1, 2].map(|word| u32::from_le_bytes(record.as_chunks().0[word]));
            if checksum(&record[..8], &[]) == sum {
                found.records.push((key_number, boot));
                found.newest_key = found.newest_key.max(Some(key_number));
            } else {
                found.spoiled += 1;
            }
        }
        found
    }

    /// The first boot under a key that was surely not used.
    pub(crate) fn next_under(&self, key_number: u32) -> u32 {
        let boots = self.records.iter().filter(|record| record.0 == key_number).map(|record| record.1);
        boots.max().unwrap_or(0).saturating_add(self.spoiled).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use embedded_storage::nor_flash::{ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash};
    use fabswarm_firmware::storage::BoardStorage;
    use fabswarm_shared::wire::seal::BootStorage;

    const SECTOR: usize = 4096;

    struct MemoryFlash(Vec<u8>);

    impl ErrorType for MemoryFlash {
        type Error = NorFlashErrorKind;
    }

    impl ReadNorFlash for MemoryFlash {
        const READ_SIZE: usize = 1;

        fn read(&mut self, at: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
            bytes.copy_from_slice(&self.0[at as usize..][..bytes.len()]);
            Ok(())
        }

        fn capacity(&self) -> usize {
            self.0.len()
        }
    }

    impl NorFlash for MemoryFlash {
        const WRITE_SIZE: usize = 4;
        const ERASE_SIZE: usize = SECTOR;

        fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
            self.0[from as usize..to as usize].fill(0xFF);
            Ok(())
        }

        fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
            self.0[at as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
    }

    #[test]
    fn the_host_reads_what_the_firmware_counts() {
        let mut flash = MemoryFlash(vec![0xFF; 4 * SECTOR]);
        for boot in 1..=400 {
            BoardStorage::new(&mut flash).boots(7, 1).unwrap().store(boot).unwrap();
            let records = BootRecords::read(&flash.0[..2 * SECTOR]);
            assert_eq!((records.newest_key, records.next_under(7)), (Some(7), boot + 1));
            assert_eq!(records.next_under(8), 1, "a new key counts anew");
        }
    }

    #[test]
    fn a_spoiled_entry_counts_as_used() {
        let mut flash = MemoryFlash(vec![0xFF; 4 * SECTOR]);
        BoardStorage::new(&mut flash).boots(7, 1).unwrap().store(3).unwrap();
        flash.0[ENTRY_BYTES] = 0;
        let records = BootRecords::read(&flash.0[..2 * SECTOR]);
        assert_eq!((records.next_under(7), records.next_under(8)), (5, 2));
        assert_eq!(BootRecords::read(&[]).next_under(7), 1);
    }
}
