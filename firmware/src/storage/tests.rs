//! A power cut at any time leaves what was stored before it.

extern crate std;
use super::*;
use core::convert::Infallible;
use embedded_storage::nor_flash::{ErrorType, ReadNorFlash};
use std::{vec, vec::Vec};

const SECTOR: usize = 64;

/// Flash in RAM that loses power after `power` written bytes.
struct FailingFlash<'a> {
    bytes: &'a mut Vec<u8>,
    power: usize,
}

impl ErrorType for FailingFlash<'_> {
    type Error = Infallible;
}

impl ReadNorFlash for FailingFlash<'_> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, out: &mut [u8]) -> Result<(), Infallible> {
        out.copy_from_slice(&self.bytes[offset as usize..][..out.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.bytes.len()
    }
}

impl NorFlash for FailingFlash<'_> {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = SECTOR;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Infallible> {
        assert!(
            (from as usize).is_multiple_of(SECTOR) && (to as usize).is_multiple_of(SECTOR),
            "only whole sectors can be erased"
        );
        if self.power > 0 {
            self.bytes[from as usize..to as usize].fill(0xFF);
        }
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Infallible> {
        assert!(offset.is_multiple_of(4) && bytes.len().is_multiple_of(4), "only whole words can be written");
        let written = self.power.min(bytes.len());
        for (place, byte) in self.bytes[offset as usize..].iter_mut().zip(&bytes[..written]) {
            assert_eq!(*place, 0xFF, "only erased flash can be written");
            *place = *byte;
        }
        self.power -= written;
        Ok(())
    }
}

fn storage(bytes: &mut Vec<u8>, power: usize) -> BoardStorage<FailingFlash<'_>> {
    BoardStorage::new(FailingFlash { bytes, power })
}

fn save(storage: &mut BoardStorage<FailingFlash<'_>>, state: &[u32]) -> Result<(), StorageFault> {
    let mut draft = storage.draft();
    state.chunks(7).try_for_each(|words| draft.write(words))?;
    draft.commit()
}

fn loaded(bytes: &mut Vec<u8>) -> Option<Vec<u32>> {
    let mut storage = storage(bytes, 0);
    let mut saved = storage.saved()?;
    let (mut out, mut word) = (Vec::new(), [0]);
    while saved.read(&mut word) {
        out.extend(word);
    }
    Some(out)
}

#[test]
fn the_last_saved_state_is_loaded() {
    let mut bytes = vec![0xFF; 10 * SECTOR];
    assert_eq!(loaded(&mut bytes), None);
    for round in 0..20u8 {
        let state = vec![u32::from(round); 10 + usize::from(round)];
        save(&mut storage(&mut bytes, usize::MAX), &state).unwrap();
        assert_eq!(loaded(&mut bytes), Some(state));
    }
}

#[test]
fn a_power_cut_leaves_the_state_before_or_the_new_one() {
    for power in 0..=HEADER_BYTES + 100 {
        let mut bytes = vec![0xFF; 10 * SECTOR];
        save(&mut storage(&mut bytes, usize::MAX), &[1; 25]).unwrap();
        save(&mut storage(&mut bytes, usize::MAX), &[2; 25]).unwrap();
        save(&mut storage(&mut bytes, power), &[3; 25]).unwrap();
        let expected = if power == HEADER_BYTES + 100 { 3 } else { 2 };
        assert_eq!(loaded(&mut bytes), Some(vec![expected; 25]), "power for {power} bytes");
    }
}

#[test]
fn a_state_that_does_not_fit_is_refused_and_the_one_before_it_stays() {
    let mut bytes = vec![0xFF; 4 * SECTOR];
    let mut storage = storage(&mut bytes, usize::MAX);
    const WORDS: usize = (SECTOR - HEADER_BYTES) / WORD_BYTES;
    save(&mut storage, &[1; WORDS]).unwrap();
    assert_eq!(save(&mut storage, &[2; WORDS + 1]), Err(StorageFault));
    assert_eq!(loaded(&mut bytes), Some(vec![1; WORDS]));
}

#[test]
fn a_state_that_could_not_be_replaced_counts_no_more() {
    let mut bytes = vec![0xFF; 10 * SECTOR];
    save(&mut storage(&mut bytes, usize::MAX), &[1; 25]).unwrap();
    save(&mut storage(&mut bytes, usize::MAX), &[2; 25]).unwrap();
    let mut storage = storage(&mut bytes, usize::MAX);
    assert_eq!(save(&mut storage, &[3; 4 * SECTOR]), Err(StorageFault));
    storage.invalidate();
    assert_eq!(loaded(&mut bytes), None);
}

#[test]
fn boots_that_have_faded_are_not_taken_for_none() {
    let mut bytes = vec![0xFF; 10 * SECTOR];
    assert_eq!(storage(&mut bytes, 0).load(), Ok(None));
    // A power cut in the first entry: nothing was sealed under that boot.
    bytes[..2].fill(0);
    assert_eq!(storage(&mut bytes, 0).load(), Ok(None));
    for boot in 0..3 {
        storage(&mut bytes, usize::MAX).store(boot).unwrap();
    }
    assert_eq!(storage(&mut bytes, 0).load(), Ok(Some(2)));
    bytes[..2 * SECTOR].iter_mut().for_each(|byte| *byte &= 0xFE);
    assert_eq!(storage(&mut bytes, 0).load(), Err(StorageFault));
}

#[test]
fn boots_only_ever_rise_whatever_power_cuts_do() {
    let mut bytes = vec![0xFF; 10 * SECTOR];
    let mut used = None;
    for start in 0..100usize {
        let power = if start % 3 == 2 { start % BOOT_BYTES } else { usize::MAX };
        let mut storage = storage(&mut bytes, power);
        let last = BootStorage::load(&mut storage).unwrap();
        assert!(last >= used, "boot {used:?} was used and {last:?} is remembered");
        let next = last.map_or(0, |last| last + 1);
        storage.store(next).unwrap();
        if power == usize::MAX {
            used = Some(next);
        }
    }
}
