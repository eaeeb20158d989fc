//! The last part of the chip's flash: the provisioning page, then what the firmware stores.

use crate::board::{PAGE_ADDRESS, PAGE_BYTES, STORAGE_ADDRESS, STORAGE_BYTES};
use core::slice;
use embassy_nrf::{
    Peri,
    nvmc::{Error, Nvmc, PAGE_SIZE},
    peripherals,
};
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fabswarm_firmware::storage::PageFlash;

/// Where the flasher has put the provisioning page.
pub fn page() -> &'static [u8] {
    // SAFETY: flash is always readable, and this part is written only in service, when nothing reads it any more.
    unsafe { slice::from_raw_parts(PAGE_ADDRESS as *const u8, PAGE_BYTES) }
}

/// The part of the flash that the firmware writes to.
pub struct NvmcFlash(Nvmc<'static>);

impl NvmcFlash {
    pub fn new(nvmc: Peri<'static, peripherals::NVMC>) -> Self {
        Self(Nvmc::new(nvmc))
    }
}

impl PageFlash for NvmcFlash {
    const CAN_WRITE: bool = true;

    fn erase_page(&mut self) -> bool {
        self.0.erase(PAGE_ADDRESS as u32, (PAGE_ADDRESS + PAGE_BYTES) as u32).is_ok()
    }

    fn write_page(&mut self, offset: u32, bytes: &[u8]) -> bool {
        offset as usize + bytes.len() <= PAGE_BYTES
            && self.0.write(PAGE_ADDRESS as u32 + offset, bytes).is_ok()
    }
}

impl ErrorType for NvmcFlash {
    type Error = Error;
}

impl ReadNorFlash for NvmcFlash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
        self.0.read(STORAGE_ADDRESS as u32 + offset, bytes)
    }

    fn capacity(&self) -> usize {
        STORAGE_BYTES
    }
}

impl NorFlash for NvmcFlash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = PAGE_SIZE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Error> {
        self.0.erase(STORAGE_ADDRESS as u32 + from, STORAGE_ADDRESS as u32 + to)
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Error> {
        self.0.write(STORAGE_ADDRESS as u32 + offset, bytes)
    }
}
