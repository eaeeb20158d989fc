//! FAB for swarms, in a form that fits a microcontroller.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod wire;
