//! What is checked before a page is written, and after, and what an error of a library says.

use super::{ChipFacts, ChipPage, FlashError, FlashJob};
use std::error::Error;

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

/// The texts of an error and of all errors that caused it.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let texts = chain(error).map(|error| error.to_string().trim_end_matches('.').to_owned());
    texts.collect::<Vec<_>>().join(": ")
}

pub(crate) fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}
