//! A power cut at any time leaves what was stored before it.

extern crate std;
use super::boots::ENTRY_BYTES;
use super::*;
use embedded_storage::nor_flash::{ErrorType, NorFlashErrorKind, ReadNorFlash};
use fabswarm_shared::{
    provisioning::Error,
    wire::seal::{BootStorage, Sealer},
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::{collections::BTreeSet, vec, vec::Vec};

const SECTOR: usize = 128;

/// Flash in RAM that loses power after `power` written bytes or erased sectors.
struct FailingFlash<'a> {
    bytes: &'a mut Vec<u8>,
    power: usize,
    erased: Vec<u32>,
    /// Units that lost power while they were written or erased. Flash with error correction, such as that of the STM32WL, cannot read
    /// them.
    torn: Option<&'a mut BTreeSet<usize>>,
}

impl ErrorType for FailingFlash<'_> {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for FailingFlash<'_> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, out: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        let units = offset as usize / UNIT_BYTES..(offset as usize + out.len()).div_ceil(UNIT_BYTES);
        if self.torn.as_ref().is_some_and(|torn| torn.range(units).next().is_some()) {
            return Err(NorFlashErrorKind::Other);
        }
        out.copy_from_slice(&self.bytes[offset as usize..][..out.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.bytes.len()
    }
}

impl NorFlash for FailingFlash<'_> {
    const WRITE_SIZE: usize = UNIT_BYTES;
    const ERASE_SIZE: usize = SECTOR;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        let (from, to) = (from as usize, to as usize);
        assert!(from.is_multiple_of(SECTOR) && to.is_multiple_of(SECTOR), "only whole sectors can be erased");
        self.erased[from / SECTOR..to / SECTOR].iter_mut().for_each(|count| *count += 1);
        let units = from / UNIT_BYTES..to / UNIT_BYTES;
        let sector = &mut self.bytes[from..to];
        match (self.power, &mut self.torn) {
            (0, _) => {}
            // Power fails within: some cells are erased, others not.
            (1, torn) => {
                sector.iter_mut().enumerate().for_each(|(at, byte)| *byte |= at as u8 ^ 0x5A);
                torn.iter_mut().for_each(|torn| torn.extend(units.clone().step_by(3)));
            }
            (_, torn) => {
                sector.fill(0xFF);
                torn.iter_mut().for_each(|torn| torn.retain(|unit| !units.contains(unit)));
            }
        }
        self.power = self.power.saturating_sub(1);
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        let offset = offset as usize;
        let is_whole = offset.is_multiple_of(UNIT_BYTES) && bytes.len().is_multiple_of(UNIT_BYTES);
        assert!(is_whole, "only whole units can be written");
        let written = self.power.min(bytes.len());
        if let Some(torn) = &mut self.torn
            && !written.is_multiple_of(UNIT_BYTES)
        {
            torn.insert((offset + written) / UNIT_BYTES);
        }
        for (place, byte) in self.bytes[offset..].iter_mut().zip(&bytes[..written]) {
            assert_eq!(*place, 0xFF, "only erased flash can be written");
            *place = *byte;
        }
        self.power -= written;
        Ok(())
    }
}

fn storage(bytes: &mut Vec<u8>, power: usize) -> BoardStorage<FailingFlash<'_>> {
    storage_with(bytes, power, None)
}

fn storage_with<'a>(
    bytes: &'a mut Vec<u8>,
    power: usize,
    torn: Option<&'a mut BTreeSet<usize>>,
) -> BoardStorage<FailingFlash<'a>> {
    let erased = vec![0; bytes.len() / SECTOR];
    BoardStorage::new(FailingFlash { bytes, power, erased, torn })
}

fn save(storage: &mut BoardStorage<FailingFlash>, state: &[u32]) -> Result<(), StorageFault> {
    let mut draft = storage.draft(state.len());
    state.chunks(7).try_for_each(|words| draft.write(words))?;
    draft.commit()
}

fn loaded(bytes: &mut Vec<u8>) -> Option<Vec<u32>> {
    saved_state(&mut storage(bytes, 0))
}

fn saved_state(storage: &mut BoardStorage<FailingFlash>) -> Option<Vec<u32>> {
    let mut saved = storage.saved()?;
    let (mut out, mut word) = (Vec::new(), [0]);
    while saved.read(&mut word) {
        out.extend(word);
    }
    Some(out)
}

#[test]
fn a_power_cut_leaves_the_state_before_or_the_new_one() {
    // The words, one more to make them whole units, and one byte's worth for each of the two sectors that are erased.
    const NEEDED: usize = HEADER_BYTES + 4 * (WORDS + 1) + 2;
    const WORDS: usize = 45;
    for power in 0..=NEEDED {
        let mut bytes = vec![0xFF; 10 * SECTOR];
        for round in 1..=5 {
            save(&mut storage(&mut bytes, usize::MAX), &[round; WORDS]).unwrap();
        }
        let is_saved = save(&mut storage(&mut bytes, power), &[6; WORDS]).is_ok();
        // The last part of the header is blank, whether it was written or not.
        let expected = if power >= NEEDED - WORD_BYTES { 6 } else { 5 };
        assert_eq!(loaded(&mut bytes), Some(vec![expected; WORDS]), "power for {power} bytes");
        assert_eq!(is_saved, expected == 6, "power for {power} bytes");
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
fn a_power_cut_while_states_are_invalidated_brings_no_old_one_back() {
    for power in 0..4 {
        let mut bytes = vec![0xFF; 4 * SECTOR];
        (1..=3).for_each(|round| save(&mut storage(&mut bytes, usize::MAX), &[round; 25]).unwrap());
        storage(&mut bytes, power).invalidate();
        let left = loaded(&mut bytes);
        let is_cut = power < 3;
        assert!(left.is_none() || is_cut && left == Some(vec![3; 25]), "power for {power} sectors: {left:?}");
    }
}

/// Regression: two of sixteen sectors took all states, and were worn out after 20,000 rounds.
#[test]
fn all_sectors_wear_alike() {
    let mut bytes = vec![0xFF; 16 * SECTOR];
    let mut storage = storage(&mut bytes, usize::MAX);
    const ROUNDS: u32 = 1400;
    for round in 0..ROUNDS {
        save(&mut storage, &[round; 20]).unwrap();
    }
    assert_eq!(storage.flash.erased[2..], [ROUNDS / 14; 14]);
    // Two of these share a sector.
    (0..2 * ROUNDS).for_each(|round| save(&mut storage, &[round; 10]).unwrap());
    assert_eq!(storage.flash.erased[2..], [2 * ROUNDS / 14; 14]);
}

/// The boot that a board reserves when it starts.
fn start(bytes: &mut Vec<u8>, power: usize, key_number: u32, floor: u32) -> Result<u32, Error> {
    reserve_boot(&mut storage(bytes, power), key_number, floor)
}

fn reserve_boot(storage: &mut BoardStorage<FailingFlash>, key_number: u32, floor: u32) -> Result<u32, Error> {
    let mut boots = storage.boots(key_number, floor)?;
    Sealer::start(0, floor, &mut boots).map(|sealer| sealer.boot()).map_err(|_| Error::Storage)
}

/// Regression: one unit that could not be read kept a board from starting for ever.
#[test]
fn unreadable_units_stop_no_board() {
    let mut torn_units = 0;
    // States that share a sector, and states that take two.
    for (words, power) in [5, 45].into_iter().flat_map(|words| (0..200).map(move |power| (words, power))) {
        let (mut bytes, mut torn) = (vec![0xFF; 10 * SECTOR], BTreeSet::new());
        let (mut used, mut kept) = (0, None);
        for start in 0..40 {
            let is_cut = start % 2 == 1;
            let mut storage =
                storage_with(&mut bytes, if is_cut { power } else { usize::MAX }, Some(&mut torn));
            let found = saved_state(&mut storage);
            assert!(found == kept || !is_cut && found == Some(vec![start - 1; words]), "power {power}");
            let boot = reserve_boot(&mut storage, 1, 1);
            assert!(is_cut || boot.is_ok(), "start {start} after power for {power} bytes: {boot:?}");
            if let Ok(boot) = boot {
                assert!(boot > used, "boot {boot} after {used}");
                used = boot;
            }
            let saved = save(&mut storage, &vec![start; words]);
            if !is_cut {
                assert_eq!(saved, Ok(()));
                kept = Some(vec![start; words]);
            }
        }
        torn_units += torn.len();
    }
    assert!(torn_units > 0);
}

#[test]
fn a_faded_bit_brings_no_old_boot_back() {
    for bit in 0..8 * ENTRY_BYTES {
        let mut bytes = vec![0xFF; 10 * SECTOR];
        for boot in 1..=6 {
            assert_eq!(start(&mut bytes, usize::MAX, 1, 1), Ok(boot));
        }
        // The sixth entry is the second of the second sector.
        bytes[SECTOR + ENTRY_BYTES + bit / 8] ^= 1 << (bit % 8);
        assert_eq!(start(&mut bytes, usize::MAX, 1, 1), Ok(7), "bit {bit}");
    }
}

#[test]
fn a_spoiled_first_boot_is_used_and_spoiled_boots_alone_are_refused() {
    let mut bytes = vec![0xFF; 10 * SECTOR];
    bytes[..2].fill(0);
    assert_eq!(start(&mut bytes, usize::MAX, 1, 1), Ok(2));
    for boot in 3..6 {
        assert_eq!(start(&mut bytes, usize::MAX, 1, 1), Ok(boot));
    }
    bytes[..2 * SECTOR].iter_mut().for_each(|byte| *byte &= 0xFE);
    assert_eq!(start(&mut bytes, usize::MAX, 1, 1), Err(Error::Storage));
}

#[test]
fn a_flash_that_ignores_writes_is_noticed() {
    let mut bytes = vec![0xFF; 10 * SECTOR];
    let mut storage = storage(&mut bytes, 0);
    assert_eq!(storage.boots(1, 1).unwrap().store(1), Err(StorageFault));
    assert_eq!(save(&mut storage, &[1; 5]), Err(StorageFault));
}

#[test]
fn a_new_key_counts_anew_and_an_old_one_is_refused() {
    let mut bytes = vec![0xFF; 10 * SECTOR];
    assert_eq!(start(&mut bytes, usize::MAX, 1, 40), Ok(40));
    assert_eq!(start(&mut bytes, usize::MAX, 1, 40), Ok(41));
    for boot in 1..=20 {
        assert_eq!(start(&mut bytes, usize::MAX, 2, 1), Ok(boot));
        assert_eq!(start(&mut bytes, usize::MAX, 1, 40), Err(Error::OldKey { page: 1, used: 2 }));
    }
    // Faded entries may have been under the new key or the raised floor.
    bytes[..2 * SECTOR].chunks_mut(ENTRY_BYTES).for_each(|entry| entry[0] = 0xF0);
    assert_eq!(start(&mut bytes, usize::MAX, 2, 1), Err(Error::Storage));
    let mut bytes = vec![0xFF; 10 * SECTOR];
    assert_eq!(start(&mut bytes, usize::MAX, 1, 1), Ok(1));
    assert_eq!(start(&mut bytes, usize::MAX, 2, 9), Ok(9));
    bytes[ENTRY_BYTES] ^= 1;
    assert_eq!(start(&mut bytes, usize::MAX, 2, 9), Ok(10));
}

/// Faults before one start of a board.
#[derive(Clone, Debug)]
struct Mishap {
    /// Written bytes until the power fails.
    power: usize,
    /// Bits of the boot sectors that change.
    flips: Vec<usize>,
}

fn mishaps() -> impl Strategy<Value = Vec<Mishap>> {
    let power = prop_oneof![3 => Just(usize::MAX), 2 => 0..2 * ENTRY_BYTES];
    let starts = vec(power, 1..60);
    let flips = vec((any::<prop::sample::Index>(), 0..2 * 8 * SECTOR), 0..=2);
    (starts, flips).prop_map(|(starts, flips)| {
        let mut mishaps: Vec<_> =
            starts.into_iter().map(|power| Mishap { power, flips: Vec::new() }).collect();
        for (start, bit) in flips {
            let start = start.index(mishaps.len());
            mishaps[start].flips.push(bit);
        }
        mishaps
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever power cuts and up to two changed bits do in the life of a board.
    #[test]
    fn boots_only_ever_rise(mishaps in mishaps()) {
        let mut bytes = vec![0xFF; 10 * SECTOR];
        let mut used = 0;
        for Mishap { power, flips } in mishaps {
            for bit in flips {
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            // A board that refuses to start seals nothing.
            if let Ok(boot) = start(&mut bytes, power, 1, 1) {
                prop_assert!(boot > used, "boot {boot} after {used}");
                used = boot;
            }
        }
    }
}
