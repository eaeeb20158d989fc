//! The Pico's flash.

use crate::board::{PAGE, STORAGE};
use embassy_rp::{
    Peri,
    flash::{Blocking, Flash},
    peripherals::FLASH,
};
use fabswarm_board_parts::flash::BoardFlash;

/// Where the processor sees the flash.
const FLASH_ADDRESS: usize = 0x1000_0000;
/// The storage is at the end of the flash.
const FLASH_BYTES: usize = STORAGE.end - FLASH_ADDRESS;

pub type QspiFlash = BoardFlash<Flash<'static, FLASH, Blocking, FLASH_BYTES>>;

pub fn flash(flash: Peri<'static, FLASH>) -> QspiFlash {
    BoardFlash::new(Flash::new_blocking(flash), FLASH_ADDRESS, PAGE, STORAGE)
}
