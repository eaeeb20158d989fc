//! A file as the board's flash: the page in front, storage behind it.

use embedded_storage::nor_flash::{ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash};
use fabswarm_firmware::{provisioning::PAGE_ROOM, storage::PageFlash};
use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

const STORAGE_BYTES: usize = 64 * 1024;

pub struct FileFlash {
    file: File,
}

impl FileFlash {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::options().read(true).write(true).open(path)? })
    }

    /// The page, at an address that its words can be read from.
    pub fn page(&self) -> io::Result<Vec<u32>> {
        let mut words = vec![0; PAGE_ROOM / size_of::<u32>()];
        self.file.read_exact_at(bytemuck::cast_slice_mut(&mut words), 0)?;
        Ok(words)
    }

    fn write_at(&self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        self.file
            .write_all_at(bytes, PAGE_ROOM as u64 + u64::from(offset))
            .map_err(|_| NorFlashErrorKind::Other)
    }
}

impl PageFlash for FileFlash {
    const CAN_WRITE: bool = true;

    fn erase_page(&mut self) -> bool {
        self.file.write_all_at(&vec![0xFF; PAGE_ROOM], 0).is_ok()
    }

    fn write_page(&mut self, offset: u32, bytes: &[u8]) -> bool {
        offset as usize + bytes.len() <= PAGE_ROOM && self.file.write_all_at(bytes, offset.into()).is_ok()
    }
}

impl ErrorType for FileFlash {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for FileFlash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        self.file
            .read_exact_at(bytes, PAGE_ROOM as u64 + u64::from(offset))
            .map_err(|_| NorFlashErrorKind::Other)
    }

    fn capacity(&self) -> usize {
        STORAGE_BYTES
    }
}

impl NorFlash for FileFlash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 4096;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        self.write_at(from, &vec![0xFF; to.saturating_sub(from) as usize])
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        self.write_at(offset, bytes)
    }
}
