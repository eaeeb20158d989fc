//! The last part of the Pico's flash: the provisioning page, then what the firmware stores.

use crate::board::{PAGE_ADDRESS, PAGE_BYTES, STORAGE_ADDRESS, STORAGE_BYTES};
use core::slice;
use embassy_rp::{
    Peri,
    flash::{Blocking, ERASE_SIZE, Error, Flash},
    peripherals::FLASH,
};
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fabswarm_firmware::storage::PageFlash;

/// Where the processor sees the flash.
const FLASH_ADDRESS: usize = 0x1000_0000;
/// The storage is at the end of the flash.
const FLASH_BYTES: usize = STORAGE_ADDRESS + STORAGE_BYTES - FLASH_ADDRESS;
/// Where the page begins, counted from the start of the flash.
const PAGE: u32 = (PAGE_ADDRESS - FLASH_ADDRESS) as u32;
/// Where the storage begins, counted from the start of the flash.
const STORAGE: u32 = (STORAGE_ADDRESS - FLASH_ADDRESS) as u32;

/// Where the flasher has put the provisioning page.
pub fn page() -> &'static [u8] {
    // SAFETY: flash is always readable, and this part is written only in service, when nothing reads it any more.
    unsafe { slice::from_raw_parts(PAGE_ADDRESS as *const u8, PAGE_BYTES) }
}

/// The part of the flash that the firmware writes to.
pub struct QspiFlash(pub Flash<'static, FLASH, Blocking, FLASH_BYTES>);

impl QspiFlash {
    pub fn new(flash: Peri<'static, FLASH>) -> Self {
        Self(Flash::new_blocking(flash))
    }
}

impl PageFlash for QspiFlash {
    const CAN_WRITE: bool = true;

    fn erase_page(&mut self) -> bool {
        self.0.blocking_erase(PAGE, PAGE + PAGE_BYTES as u32).is_ok()
    }

    fn write_page(&mut self, offset: u32, bytes: &[u8]) -> bool {
        offset as usize + bytes.len() <= PAGE_BYTES && self.0.blocking_write(PAGE + offset, bytes).is_ok()
    }
}

impl ErrorType for QspiFlash {
    type Error = Error;
}

impl ReadNorFlash for QspiFlash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
        self.0.blocking_read(STORAGE + offset, bytes)
    }

    fn capacity(&self) -> usize {
        STORAGE_BYTES
    }
}

impl NorFlash for QspiFlash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = ERASE_SIZE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Error> {
        self.0.blocking_erase(STORAGE + from, STORAGE + to)
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Error> {
        self.0.blocking_write(STORAGE + offset, bytes)
    }
}
