//! A file as the board's flash: the page in front, storage behind it.

use embedded_storage::nor_flash::{ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash};
use fabswarm_board_parts::flash::BoardFlash;
use fabswarm_firmware::provisioning::PAGE_ROOM;
use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

const FILE_BYTES: usize = PAGE_ROOM + 64 * 1024;

pub struct FileFlash(File);

impl FileFlash {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(File::options().read(true).write(true).open(path)?))
    }

    /// The page, at an address that its words can be read from.
    pub fn page(&self) -> io::Result<Vec<u32>> {
        let mut words = vec![0; PAGE_ROOM / size_of::<u32>()];
        self.0.read_exact_at(bytemuck::cast_slice_mut(&mut words), 0)?;
        Ok(words)
    }

    pub const fn into_board_flash(self) -> BoardFlash<Self> {
        BoardFlash::new(self, 0, 0..PAGE_ROOM, PAGE_ROOM..FILE_BYTES)
    }
}

impl ErrorType for FileFlash {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for FileFlash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        self.0.read_exact_at(bytes, offset.into()).map_err(|_| NorFlashErrorKind::Other)
    }

    fn capacity(&self) -> usize {
        FILE_BYTES
    }
}

impl NorFlash for FileFlash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 4096;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        self.write(from, &vec![0xFF; to.saturating_sub(from) as usize])
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        self.0.write_all_at(bytes, offset.into()).map_err(|_| NorFlashErrorKind::Other)
    }
}
