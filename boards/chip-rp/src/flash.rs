//! The flash chip of the board.

use embassy_rp::{
    flash::{Blocking, Flash},
    peripherals::FLASH,
};

/// Where the processor sees the flash.
pub const FLASH_ADDRESS: usize = 0x1000_0000;

/// The driver of the flash up to `BYTES`.
pub type QspiFlash<const BYTES: usize> = Flash<'static, FLASH, Blocking, BYTES>;

/// The number that the maker gave the flash chip: the RP2040 itself has none.
#[cfg(feature = "rp2040")]
pub fn number<const BYTES: usize>(flash: &mut QspiFlash<BYTES>) -> Option<u64> {
    let mut number = [0; 8];
    flash.blocking_unique_id(&mut number).ok()?;
    Some(u64::from_be_bytes(number))
}
