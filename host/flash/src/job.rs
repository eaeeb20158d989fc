//! What is flashed, and what is told about it on the way.

use super::{FlashImage, FlashRegion};
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

/// What boards of one kind get, and how their chips are known.
#[derive(Clone, Debug)]
pub struct FlashJob {
    /// The chip, as the library that reaches it names it.
    pub chip: String,
    /// How the part is told from others, where it can be.
    pub part: Option<PartNumber>,
    /// The address of the 64-bit number that the maker gave each chip, where it can be read.
    pub number_at: Option<u64>,
    /// The image of all boards.
    pub image: FlashImage,
    /// Where an image may be.
    pub image_room: FlashRegion,
    /// Where the page is.
    pub page_room: FlashRegion,
    /// Where the board counts its boots: read before anything is written, and never written.
    pub boots: FlashRegion,
}

/// What a chip tells before anything is written.
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
    /// The number of its chip.
    pub number: Option<u64>,
    /// Bytes of image and page.
    pub bytes: usize,
}

/// What flashing a board has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashStep {
    /// There are so many more bytes to erase, write or read.
    More(u64),
    /// It does this now.
    Now(&'static str),
    /// It has done so many bytes.
    Done(u64),
}

/// Says which page is for a chip: none if it is to be left as it is, or why none can be made.
pub type PageChoice<'a> = dyn Fn(&ChipFacts) -> Result<Option<ChipPage>, String> + Sync + 'a;

/// Is told what happens to which of the boards.
pub type StepReport<'a> = dyn Fn(usize, FlashStep) + Sync + 'a;
