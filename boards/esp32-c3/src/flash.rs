//! The last part of the flash: the provisioning page, then what the firmware stores. The processor does not see it: it is read by
//! commands to the flash chip.

use crate::board::{PAGE_ADDRESS, PAGE_BYTES, STORAGE_ADDRESS, STORAGE_BYTES};
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use esp_hal::peripherals::FLASH;
use esp_storage::{FlashStorage, FlashStorageError};
use fabswarm_firmware::storage::PageFlash;
use static_cell::ConstStaticCell;

/// The page in RAM. Its words are read where they are.
#[repr(align(4))]
struct PageCopy([u8; PAGE_BYTES]);

static PAGE: ConstStaticCell<PageCopy> = ConstStaticCell::new(PageCopy([0; PAGE_BYTES]));

/// The part of the flash that the firmware writes to.
pub struct ChipFlash(FlashStorage<'static>);

impl ChipFlash {
    pub fn new(flash: FLASH<'static>) -> Self {
        Self(FlashStorage::new(flash))
    }

    /// Copies the page to RAM. Call once.
    pub fn page(&mut self) -> &'static [u8] {
        let PageCopy(copy) = PAGE.take();
        // What cannot be read is no page, and the board says so.
        let _ = self.0.read_nor(PAGE_ADDRESS as u32, copy);
        copy
    }
}

impl PageFlash for ChipFlash {
    const CAN_WRITE: bool = true;

    fn erase_page(&mut self) -> bool {
        self.0.erase(PAGE_ADDRESS as u32, (PAGE_ADDRESS + PAGE_BYTES) as u32).is_ok()
    }

    fn write_page(&mut self, offset: u32, bytes: &[u8]) -> bool {
        offset as usize + bytes.len() <= PAGE_BYTES
            && self.0.write_nor(PAGE_ADDRESS as u32 + offset, bytes).is_ok()
    }
}

impl ErrorType for ChipFlash {
    type Error = FlashStorageError;
}

impl ReadNorFlash for ChipFlash {
    const READ_SIZE: usize = FlashStorage::READ_SIZE;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), FlashStorageError> {
        self.0.read_nor(STORAGE_ADDRESS as u32 + offset, bytes)
    }

    fn capacity(&self) -> usize {
        STORAGE_BYTES
    }
}

impl NorFlash for ChipFlash {
    const WRITE_SIZE: usize = FlashStorage::WRITE_SIZE;
    const ERASE_SIZE: usize = FlashStorage::ERASE_SIZE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), FlashStorageError> {
        self.0.erase(STORAGE_ADDRESS as u32 + from, STORAGE_ADDRESS as u32 + to)
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashStorageError> {
        self.0.write_nor(STORAGE_ADDRESS as u32 + offset, bytes)
    }
}
