//! fabswarm's firmware without a chip.
#![no_std]
#[macro_use]
mod fmt;
pub mod link;
