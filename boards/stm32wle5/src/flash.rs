//! The last part of the chip's flash: the provisioning page, then what the firmware stores.

use crate::board::{PAGE_ADDRESS, PAGE_BYTES, STORAGE_ADDRESS, STORAGE_BYTES};
use core::slice;
use embassy_stm32::{
    Peri,
    flash::{Blocking, Error, FLASH_BASE, Flash, WRITE_SIZE},
    peripherals,
};
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fabswarm_firmware::storage::PageFlash;

/// Where the page begins, counted from the start of the flash.
const PAGE: u32 = (PAGE_ADDRESS - FLASH_BASE) as u32;
/// Where the storage begins, counted from the start of the flash.
const STORAGE: u32 = (STORAGE_ADDRESS - FLASH_BASE) as u32;

/// Where the flasher has put the provisioning page.
pub fn page() -> &'static [u8] {
    // SAFETY: flash is always readable, and this part is written only in service, when nothing reads it any more.
    unsafe { slice::from_raw_parts(PAGE_ADDRESS as *const u8, PAGE_BYTES) }
}

/// The part of the flash that the firmware writes to.
pub struct ChipFlash(Flash<'static, Blocking>);

impl ChipFlash {
    pub fn new(flash: Peri<'static, peripherals::FLASH>) -> Self {
        Self(Flash::new_blocking(flash))
    }
}

impl PageFlash for ChipFlash {
    const CAN_WRITE: bool = true;

    fn erase_page(&mut self) -> bool {
        self.0.blocking_erase(PAGE, PAGE + PAGE_BYTES as u32).is_ok()
    }

    fn write_page(&mut self, offset: u32, bytes: &[u8]) -> bool {
        offset as usize + bytes.len() <= PAGE_BYTES && self.0.blocking_write(PAGE + offset, bytes).is_ok()
    }
}

impl ErrorType for ChipFlash {
    type Error = Error;
}

impl ReadNorFlash for ChipFlash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
        self.0.blocking_read(STORAGE + offset, bytes)
    }

    fn capacity(&self) -> usize {
        STORAGE_BYTES
    }
}

impl NorFlash for ChipFlash {
    const WRITE_SIZE: usize = WRITE_SIZE;
    // Two of the chip's: hosts read the boots of all boards in sectors of this size.
    const ERASE_SIZE: usize = 4096;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Error> {
        self.0.blocking_erase(STORAGE + from, STORAGE + to)
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Error> {
        self.0.blocking_write(STORAGE + offset, bytes)
    }
}
