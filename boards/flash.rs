//! Page and storage in the flash of a chip, behind the image. Part of boards whose HAL has a driver for that flash.

use crate::board::{PAGE_ADDRESS, PAGE_BYTES, STORAGE_ADDRESS, STORAGE_BYTES};
use core::slice;
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fabswarm_firmware::storage::PageFlash;

/// Where the flasher has put the provisioning page.
#[allow(dead_code, reason = "not every processor sees its flash")]
pub fn page() -> &'static [u8] {
    // SAFETY: flash is always readable, and this part is written only in service, when nothing reads it any more.
    unsafe { slice::from_raw_parts(PAGE_ADDRESS as *const u8, PAGE_BYTES) }
}

/// The part of the flash that the firmware writes to. The driver `F` counts from address `ORIGIN` on.
pub struct BoardFlash<F, const ORIGIN: usize>(pub F);

impl<F, const ORIGIN: usize> BoardFlash<F, ORIGIN> {
    const PAGE: u32 = (PAGE_ADDRESS - ORIGIN) as u32;
    const STORAGE: u32 = (STORAGE_ADDRESS - ORIGIN) as u32;
}

impl<F: NorFlash, const ORIGIN: usize> PageFlash for BoardFlash<F, ORIGIN> {
    const CAN_WRITE: bool = true;

    fn erase_page(&mut self) -> bool {
        self.0.erase(Self::PAGE, Self::PAGE + PAGE_BYTES as u32).is_ok()
    }

    fn write_page(&mut self, offset: u32, bytes: &[u8]) -> bool {
        offset as usize + bytes.len() <= PAGE_BYTES && self.0.write(Self::PAGE + offset, bytes).is_ok()
    }
}

impl<F: NorFlash, const ORIGIN: usize> ErrorType for BoardFlash<F, ORIGIN> {
    type Error = F::Error;
}

impl<F: NorFlash, const ORIGIN: usize> ReadNorFlash for BoardFlash<F, ORIGIN> {
    const READ_SIZE: usize = F::READ_SIZE;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), F::Error> {
        self.0.read(Self::STORAGE + offset, bytes)
    }

    fn capacity(&self) -> usize {
        STORAGE_BYTES
    }
}

impl<F: NorFlash, const ORIGIN: usize> NorFlash for BoardFlash<F, ORIGIN> {
    const WRITE_SIZE: usize = F::WRITE_SIZE;
    // Hosts read the boots of all boards in sectors of this size, which may be several of the chip's.
    const ERASE_SIZE: usize = const {
        assert!(4096_usize.is_multiple_of(F::ERASE_SIZE));
        4096
    };

    fn erase(&mut self, from: u32, to: u32) -> Result<(), F::Error> {
        self.0.erase(Self::STORAGE + from, Self::STORAGE + to)
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), F::Error> {
        self.0.write(Self::STORAGE + offset, bytes)
    }
}
