//! The number of the board.

use crate::qspi::QspiFlash;

/// The number that the maker gave the flash chip: the RP2040 itself has none.
pub fn id(flash: &mut QspiFlash) -> Option<u64> {
    let mut id = [0; 8];
    flash.driver.blocking_unique_id(&mut id).ok()?;
    Some(u64::from_be_bytes(id))
}
