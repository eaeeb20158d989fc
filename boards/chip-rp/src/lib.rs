//! The RP2040 and the RP2350: watchdog, flash and USB port.
#![no_std]

pub mod flash;
pub mod health;
#[cfg(feature = "usb")]
pub mod usb;

defmt::timestamp!("{=u64:us}", embassy_time::Instant::now().as_micros());
