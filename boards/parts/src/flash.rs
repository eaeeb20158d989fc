//! Page and storage in the flash of a chip, behind the image.

use core::ops::Range;
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fabswarm_firmware::storage::PageFlash;

/// The part of the flash that the firmware writes to.
#[derive(Debug)]
pub struct BoardFlash<F> {
    driver: F,
    /// As the driver counts.
    page: Range<u32>,
    storage: Range<u32>,
}

impl<F> BoardFlash<F> {
    /// The flash behind a driver that counts from address `origin` on, with the page and the storage at these addresses.
    pub const fn new(driver: F, origin: usize, page: Range<usize>, storage: Range<usize>) -> Self {
        let page = (page.start - origin) as u32..(page.end - origin) as u32;
        let storage = (storage.start - origin) as u32..(storage.end - origin) as u32;
        Self { driver, page, storage }
    }
}

impl<F: NorFlash> PageFlash for BoardFlash<F> {
    const CAN_WRITE: bool = true;

    fn erase_page(&mut self) -> bool {
        self.driver.erase(self.page.start, self.page.end).is_ok()
    }

    fn write_page(&mut self, offset: u32, bytes: &[u8]) -> bool {
        let end = (offset as usize).checked_add(bytes.len());
        end.is_some_and(|end| end <= self.page.len())
            && self.driver.write(self.page.start + offset, bytes).is_ok()
    }
}

impl<F: NorFlash> ErrorType for BoardFlash<F> {
    type Error = F::Error;
}

impl<F: NorFlash> ReadNorFlash for BoardFlash<F> {
    const READ_SIZE: usize = F::READ_SIZE;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), F::Error> {
        self.driver.read(self.storage.start + offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.storage.len()
    }
}

impl<F: NorFlash> NorFlash for BoardFlash<F> {
    const WRITE_SIZE: usize = F::WRITE_SIZE;
    // Hosts read the boots of all boards in sectors of this size, which may be several of the chip's.
    const ERASE_SIZE: usize = const {
        assert!(4096_usize.is_multiple_of(F::ERASE_SIZE));
        4096
    };

    fn erase(&mut self, from: u32, to: u32) -> Result<(), F::Error> {
        self.driver.erase(self.storage.start + from, self.storage.start + to)
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), F::Error> {
        self.driver.write(self.storage.start + offset, bytes)
    }
}
