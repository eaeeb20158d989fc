//! Writes firmware and pages to the flash of real boards, and reads back what it wrote.
//!
//! All boards of a kind get the same [`FlashImage`], and each a page of its own, which is made once its chip is known. This crate
//! knows chips and bytes, but no swarms: its caller chooses the page for each chip.

#[cfg(feature = "drivers")]
mod checks;
#[cfg(feature = "drivers")]
pub mod esp;
mod image;
mod job;
#[cfg(feature = "drivers")]
mod parallel;
#[cfg(feature = "drivers")]
pub mod probe;

pub use image::{FlashImage, FlashRegion};
pub use job::{ChipFacts, ChipPage, FlashJob, FlashStep, FlashedBoard, PageChoice, PartNumber, StepReport};
