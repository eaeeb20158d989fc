//! The board's flash: PSRAM that the emulator backs with a file, so that it outlives the process.

use crate::board::STORAGE;
use core::{convert::Infallible, ptr};
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fabswarm_firmware::storage::PageFlash;

/// The part of the flash that the firmware writes to, with the habits of NOR flash.
pub struct PsramFlash;

impl PsramFlash {
    /// The address of `length` bytes at `offset`.
    fn place(offset: u32, length: usize) -> *mut u8 {
        let end = offset as usize + length;
        assert!(end <= STORAGE.len(), "an access behind the storage");
        (STORAGE.start + offset as usize) as *mut u8
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
        let place = Self::place(offset, bytes.len());
        // SAFETY: PSRAM is there from reset on; `place` checked the bounds; nobody else refers to this memory.
        unsafe { ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), bytes.len()) };
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
        let length = to.saturating_sub(from) as usize;
        // SAFETY: as in `read`.
        unsafe { ptr::write_bytes(Self::place(from, length), 0xFF, length) };
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Infallible> {
        let place = Self::place(offset, bytes.len());
        // SAFETY: as in `read`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        Ok(())
    }
}
