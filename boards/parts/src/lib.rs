//! Parts of boards that no HAL brings.
#![no_std]

#[cfg(feature = "usb")]
pub mod cdc_port;
#[cfg(feature = "cortex-m")]
pub mod fault;
pub mod flash;
#[cfg(feature = "cortex-m")]
pub mod panic;
#[cfg(feature = "cortex-m")]
pub mod stack;
