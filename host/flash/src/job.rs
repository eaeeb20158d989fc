//! The job of flashing boards, and its progress.

use super::{FlashImage, FlashRegion};
use fabswarm_diagnostic::Diagnostic;
use zeroize::Zeroizing;

/// The number by which a chip tells which part it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartNumber {
    /// Its address.
    pub at: u64,
    /// The bits that count.
    pub mask: u32,
    /// Their value.
    pub value: u32,
}

/// The image and layout for boards of one kind, and how to recognise their chips.
#[derive(Clone, Debug)]
pub struct FlashJob {
    /// The chip, as the library that reaches it names it.
    pub chip: String,
    /// The part number to expect, where chips have one.
    pub part: Option<PartNumber>,
    /// The address of the 64-bit number that the maker gave each chip, where it can be read.
    pub number_at: Option<u64>,
    /// The image of all boards.
    pub image: FlashImage,
    /// The region for images.
    pub image_room: FlashRegion,
    /// The region of the page.
    pub page_room: FlashRegion,
    /// The region of the boot counter: read before anything is written, and never written.
    pub boots: FlashRegion,
}

/// Facts that are read from a chip before anything is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipFacts {
    /// The number that its maker gave it.
    pub number: Option<u64>,
    /// The flash in which it counts its boots.
    pub boots: Vec<u8>,
}

/// The page for one chip.
#[derive(Clone, Debug)]
pub struct ChipPage {
    /// Its agent.
    pub agent: usize,
    /// The chip that alone may have it.
    pub chip: Option<u64>,
    /// Its bytes, with the key of the swarm.
    pub bytes: Zeroizing<Vec<u8>>,
}

/// A board that has its image and page, both read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashedBoard {
    /// Its agent.
    pub agent: usize,
    /// Bytes of image and page.
    pub bytes: usize,
}

/// Progress of flashing a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashStep {
    /// This many more bytes are to be erased, written or read.
    More(u64),
    /// It does this now.
    Now(&'static str),
    /// This many more bytes are done.
    Done(u64),
}

/// Chooses the page for a chip: `None` to leave the chip as it is, or the reason why there is no page.
pub type PageChoice<'a> = dyn Fn(&ChipFacts) -> Result<Option<ChipPage>, Diagnostic> + Sync + 'a;

/// Receives the progress of each board, by its index.
pub type StepReport<'a> = dyn Fn(usize, FlashStep) + Sync + 'a;
