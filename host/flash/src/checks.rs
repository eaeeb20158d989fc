//! Checks of pages before and after they are written, and errors of libraries.

use super::{ChipFacts, ChipPage, FlashJob, PageChoice};
use fabswarm_diagnostic::Diagnostic;
use std::error::Error;

impl FlashJob {
    /// The page for a chip, which fits it; `None` to leave the chip as it is.
    pub(crate) fn page_for(
        &self,
        facts: &ChipFacts,
        page_of: &PageChoice<'_>,
    ) -> Result<Option<ChipPage>, Diagnostic> {
        let Some(page) = page_of(facts)? else { return Ok(None) };
        let (bytes, room) = (page.bytes.len(), self.page_room.bytes);
        match (page.chip, facts.number) {
            (Some(bound), Some(chip)) if bound != chip => Err(Diagnostic::new(
                format!(
                    "the record is bound to chip {bound:016x}, and this is chip {chip:016x}: it would refuse the record"
                ),
                "flash the board with that chip, or write this chip into the swarm file",
            )),
            _ if bytes as u64 > room => Err(Diagnostic::new(
                format!("the provisioning record takes {bytes} bytes, and the board has {room} for it"),
                "give the agent fewer samples",
            )),
            _ => Ok(Some(page)),
        }
    }

    /// The image and a page: bytes, and the addresses where they go.
    pub(crate) fn parts<'a>(&'a self, page: &'a ChipPage) -> impl Iterator<Item = (u64, &'a [u8])> {
        self.image.parts().chain([(self.page_room.origin, &page.bytes[..])])
    }
}

/// Pieces of what is in flash from an address on, each with its address.
pub(crate) fn pieces((address, bytes): (u64, &[u8]), length: usize) -> impl Iterator<Item = (u64, &[u8])> {
    (address..).step_by(length).zip(bytes.chunks(length))
}

/// The error for the first byte in which two readings of the flash from `address` on differ.
pub(crate) fn first_difference(address: u64, expected: &[u8], found: &[u8]) -> Option<Diagnostic> {
    let (at, (&expected, &found)) =
        (address..).zip(expected.iter().zip(found)).find(|(_, (expected, found))| expected != found)?;
    let remedy = "flash it again; if it differs at the same place, its flash is worn out: replace the board";
    Some(Diagnostic::new(format!("has {found:#04x} at {at:#x}, where {expected:#04x} was written"), remedy))
}

/// The port or probe cannot be opened.
pub(crate) fn not_opened(reason: &str) -> Diagnostic {
    let what = format!("cannot be opened: {reason}");
    Diagnostic::new(what, "end the program that uses it; `fabswarm doctor` checks your access rights")
}

/// The port or probe is gone.
pub(crate) fn unplugged(purpose: &str) -> Diagnostic {
    let what = format!("was unplugged while it was to {purpose}");
    Diagnostic::new(what, "plug it in and flash it again: what it has now is only part of an image")
}

/// The chip failed.
pub(crate) fn failed(purpose: &str, reason: &str) -> Diagnostic {
    let what = format!("could not {purpose}: {reason}");
    Diagnostic::new(what, "flash it again; if that fails too, replace the board")
}

/// The texts of an error and of all errors that caused it.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let texts = chain(error).map(|error| error.to_string().trim_end_matches('.').to_owned());
    texts.collect::<Vec<_>>().join(": ")
}

pub(crate) fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}
