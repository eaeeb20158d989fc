//! Checks of pages before and after they are written, and errors of libraries.

use super::{ChipFacts, ChipPage, FlashJob};
use fabswarm_diagnostic::Diagnostic;
use std::error::Error;

impl FlashJob {
    /// Checks a page for a chip of which these facts are known, before anything is written.
    pub(crate) fn check_page(&self, page: &ChipPage, facts: &ChipFacts) -> Result<(), Diagnostic> {
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
            _ => Ok(()),
        }
    }
}

/// The error for the first byte in which two readings of the flash from `address` on differ.
pub(crate) fn first_difference(address: u64, expected: &[u8], found: &[u8]) -> Option<Diagnostic> {
    let (at, (&expected, &found)) =
        (address..).zip(expected.iter().zip(found)).find(|(_, (expected, found))| expected != found)?;
    Some(Diagnostic::new(
        format!("has {found:#04x} at {at:#x}, where {expected:#04x} was written"),
        "flash it again; if it differs at the same place, its flash is worn out: replace the board",
    ))
}

/// The port or probe cannot be opened.
pub(crate) fn not_opened(reason: &str) -> Diagnostic {
    Diagnostic::new(
        format!("cannot be opened: {reason}"),
        "end the program that uses it; `fabswarm doctor` checks your access rights",
    )
}

/// The port or probe is gone.
pub(crate) fn unplugged(purpose: &str) -> Diagnostic {
    Diagnostic::new(
        format!("was unplugged while it was to {purpose}"),
        "plug it in and flash it again: what it has now is only part of an image",
    )
}

/// The chip failed.
pub(crate) fn failed(purpose: &str, reason: &str) -> Diagnostic {
    Diagnostic::new(
        format!("could not {purpose}: {reason}"),
        "flash it again; if that fails too, replace the board",
    )
}

/// The texts of an error and of all errors that caused it.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let texts = chain(error).map(|error| error.to_string().trim_end_matches('.').to_owned());
    texts.collect::<Vec<_>>().join(": ")
}

pub(crate) fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}
