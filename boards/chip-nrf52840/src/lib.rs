//! The nRF52840: clocks, watchdog and radio, for boards with Nordic's reference design. `template` has files of its own for the first two.
#![no_std]

pub mod chip;
pub mod health;
pub mod radio;
