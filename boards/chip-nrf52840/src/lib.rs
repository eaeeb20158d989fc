//! The nRF52840: clocks, watchdog and radio, for boards with Nordic's reference design.
#![no_std]

pub mod chip;
pub mod health;
pub mod radio;
