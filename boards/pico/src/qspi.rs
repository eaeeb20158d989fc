//! The Pico's flash.

use crate::{
    board::{STORAGE_ADDRESS, STORAGE_BYTES},
    flash::BoardFlash,
};
use embassy_rp::{
    Peri,
    flash::{Blocking, Flash},
    peripherals::FLASH,
};

/// Where the processor sees the flash.
const FLASH_ADDRESS: usize = 0x1000_0000;
/// The storage is at the end of the flash.
const FLASH_BYTES: usize = STORAGE_ADDRESS + STORAGE_BYTES - FLASH_ADDRESS;

pub type QspiFlash = BoardFlash<Flash<'static, FLASH, Blocking, FLASH_BYTES>, FLASH_ADDRESS>;

pub fn flash(flash: Peri<'static, FLASH>) -> QspiFlash {
    BoardFlash(Flash::new_blocking(flash))
}
