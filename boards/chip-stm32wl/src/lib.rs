//! The STM32WL: clocks, watchdog, flash and radio.
#![no_std]

pub mod chip;
pub mod flash;
pub mod health;
pub mod radio;
