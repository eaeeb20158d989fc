//! What is flashed to chips that are not there, and how far that is.

use fabswarm_diagnostic::Diagnostic;
use fabswarm_flash::{ChipFacts, ChipPage, FlashStep};
use std::sync::Mutex;

/// Bytes that repeat nowhere.
pub(crate) fn image_bytes(length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// The page of the agent whose number is in the last digits of its chip.
pub(crate) fn page_of(facts: &ChipFacts) -> Result<Option<ChipPage>, Diagnostic> {
    let agent = facts.number.unwrap() as usize & 0xFF;
    let bytes = vec![agent as u8; 3000 + agent].into();
    Ok(Some(ChipPage { agent, chip: facts.number, bytes }))
}

/// Adds up the bytes to do and the bytes done of each board.
pub(crate) fn count(counts: &Mutex<[(u64, u64); 8]>) -> impl Fn(usize, FlashStep) + Sync {
    |index, step| {
        let (total, done) = &mut counts.lock().unwrap()[index];
        match step {
            FlashStep::More(bytes) => *total += bytes,
            FlashStep::Done(bytes) => *done += bytes,
            FlashStep::Now(_) => {}
        }
    }
}
