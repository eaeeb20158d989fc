//! The format of what agents send each other.
//!
//! ```text
//!   v, σ ──payload──▶ payload ──frame──▶ frame ──seal──▶ sealed frame ─┬─fragment──▶ packets of a radio
//!                                                                      └─stream────▶ bytes of a serial line
//! ```
//!
//! Each step works alone, on slices that the caller owns, and returns an [`Error`] for invalid input before any state
//! changes. No input makes it panic.
//!
//! All numbers are little-endian; header numbers are postcard varints, so a frame of a small swarm is small.

mod error;
pub mod fragment;
pub mod frame;
pub mod payload;
#[cfg(test)]
mod recorded;
pub mod seal;
pub mod stream;

pub use error::Error;
pub use frame::{Frame, SCHEMA};
