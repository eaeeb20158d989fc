//! What is checked before a page is written, and after.

use super::{ChipFacts, ChipPage, FlashError, FlashJob};

impl FlashJob {
    /// Checks a page for a chip of which these facts are known, before anything is written.
    pub(crate) fn check_page(&self, page: &ChipPage, facts: &ChipFacts) -> Result<(), FlashError> {
        match (page.chip, facts.number) {
            (Some(bound), Some(chip)) if bound != chip => Err(FlashError::OtherChip { bound, chip }),
            _ if page.bytes.len() as u64 > self.page_room.bytes => {
                Err(FlashError::PageTooLarge { bytes: page.bytes.len(), room: self.page_room.bytes })
            }
            _ => Ok(()),
        }
    }
}

/// Where two readings of the flash from `address` on first differ.
pub(crate) fn first_difference(address: u64, expected: &[u8], found: &[u8]) -> Option<FlashError> {
    let (at, (&expected, &found)) =
        (address..).zip(expected.iter().zip(found)).find(|(_, (expected, found))| expected != found)?;
    Some(FlashError::Differs { at, expected, found })
}
