//! The board's flash: PSRAM that the emulator backs with a file, so that it outlives the process.

use crate::board::STORAGE;
use core::{convert::Infallible, slice};
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fabswarm_firmware::storage::PageFlash;

/// The part of the flash that the firmware writes to, with the habits of NOR flash.
pub struct PsramFlash;

impl PsramFlash {
    /// The `length` bytes at `offset`.
    fn place(&mut self, offset: u32, length: usize) -> &mut [u8] {
        let end = offset as usize + length;
        assert!(end <= STORAGE.len(), "an access behind the storage");
        // SAFETY: PSRAM is there from reset on, the bounds were checked, and nothing else refers to this memory.
        unsafe { slice::from_raw_parts_mut((STORAGE.start + offset as usize) as *mut u8, length) }
    }
}

/// The host writes the file behind the page.
impl PageFlash for PsramFlash {}

impl ErrorType for PsramFlash {
    type Error = Infallible;
}

impl ReadNorFlash for PsramFlash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.copy_from_slice(self.place(offset, bytes.len()));
        Ok(())
    }

    fn capacity(&self) -> usize {
        STORAGE.len()
    }
}

impl NorFlash for PsramFlash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 4096;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Infallible> {
        self.place(from, to.saturating_sub(from) as usize).fill(0xFF);
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Infallible> {
        self.place(offset, bytes.len()).copy_from_slice(bytes);
        Ok(())
    }
}
