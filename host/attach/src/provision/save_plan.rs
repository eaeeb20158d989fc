//! How often a board in slots saves its decision, so that its flash lasts.

use crate::firmware::board_file::{BOOTS_BYTES, BoardFile};

/// Flash of a board that always runs lasts this long.
pub const FLASH_YEARS: f64 = 5.0;
const SECONDS_PER_YEAR: f64 = 365.25 * 86_400.0;
/// The unit in which boards count their storage.
const SECTOR_BYTES: u64 = 4096;
const WORD_BYTES: u64 = 4;
/// Words of a record besides the state: length, number, checksum, a blank, and the checksum of the page.
const RECORD_WORDS: u64 = 5;

/// The writes of a board to its flash, by the figures of its `board.toml`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SavePlan {
    /// Rounds from one saved decision to the next; 0 if the storage cannot hold two.
    pub every: u32,
    /// How long an erase stops the board.
    pub erase_ms: u32,
    /// How long the flash would last if the whole state were saved in every round.
    pub whole_hours: f64,
}

impl SavePlan {
    /// Plans the writes of a board with room for `members`, of decisions of `words` words.
    pub(crate) fn new(board: &BoardFile, words: usize, members: usize, round_us: u64) -> Self {
        let storage = board.storage;
        let sectors = storage.bytes().saturating_sub(BOOTS_BYTES) / SECTOR_BYTES;
        let record = WORD_BYTES * (RECORD_WORDS + members as u64 + words as u64).next_multiple_of(2);
        let records = match SECTOR_BYTES / record {
            0 => sectors / record.div_ceil(SECTOR_BYTES),
            per_sector => sectors * per_sector,
        };
        let saves = (records * u64::from(storage.endurance)) as f64;
        let rounds = FLASH_YEARS * SECONDS_PER_YEAR * 1e6 / round_us as f64;
        let whole_rounds = (sectors * u64::from(storage.endurance)) as f64;
        Self {
            // Only whole states are saved in every round.
            every: if records < 2 { 0 } else { (rounds / saves).ceil().max(2.0) as u32 },
            erase_ms: storage.erase_ms,
            whole_hours: whole_rounds * round_us as f64 / 3.6e9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_saved_as_often_as_flash_lasts() {
        let plan = |board: &str, round_us| SavePlan::new(&BoardFile::read(board).unwrap(), 45, 16, round_us);
        let dk = plan("nrf52840-dk", 66_000);
        // 15 records share each of 14 sectors, which take 10,000 erases: one in 75 s.
        assert_eq!((dk.every, dk.erase_ms), (1139, 85));
        assert!((2.5..2.7).contains(&dk.whole_hours), "{dk:?}");
        assert!(plan("pico", 66_000).every < dk.every / 9, "its flash takes ten times as many erases");
        assert_eq!(plan("lora-e5", 24_000_000).every, 8);
    }

    #[test]
    fn a_decision_that_does_not_fit_twice_is_not_saved() {
        let board = BoardFile::read("lora-e5").unwrap();
        assert!(SavePlan::new(&board, 3000, 16, 66_000).every > 0);
        assert_eq!(SavePlan::new(&board, 4000, 16, 66_000).every, 0);
    }
}
