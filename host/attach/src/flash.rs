//! A file that is a board's flash: its page in front, its storage behind.

use super::Error;
use fabswarm_shared::provisioning::{BufferTooSmall, PAGE_ROOM, Page, page_crc};
use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// The emulated machine maps all of its PSRAM to the file and takes no other size.
const FLASH_BYTES: u64 = 16 << 20;

/// What firmware stores, behind the page.
const STORAGE_BYTES: usize = 64 * 1024;

/// The two sectors in which firmware counts its boots, in front of everything else it stores.
const BOOTS_BYTES: usize = 2 * 4096;

/// The bytes of a page.
pub(super) fn page_bytes(page: &Page<'_>) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; PAGE_ROOM];
    let length = page
        .write(&mut bytes)
        .map_err(|BufferTooSmall| Error::PageTooLarge { agent: page.agent.id, room: PAGE_ROOM })?;
    bytes.truncate(length);
    Ok(bytes)
}

/// One board's flash.
#[derive(Debug)]
pub(super) struct Flash {
    path: PathBuf,
    page_crc: u32,
}

impl Flash {
    /// Makes a new flash file with these bytes where the page should be.
    pub(super) fn create(path: PathBuf, page: &[u8]) -> Result<Self, Error> {
        let write = || {
            let file = File::create(&path)?;
            file.set_len(FLASH_BYTES)?;
            // As flash comes from the factory.
            file.write_all_at(&[0xFF; STORAGE_BYTES], PAGE_ROOM as u64)?;
            file.write_all_at(page, 0)
        };
        write().map_err(|source| Error::File { path: path.clone(), source })?;
        Ok(Self { path, page_crc: page_crc(page) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Tells this page from any other.
    pub(super) fn page_crc(&self) -> u32 {
        self.page_crc
    }

    /// Loses the agent's state. The page stays, and so does the count of boots: seals must never be used twice.
    pub(super) fn forget_state(&self) -> Result<(), Error> {
        let erase = || {
            let file = File::options().write(true).open(&self.path)?;
            file.write_all_at(&[0xFF; STORAGE_BYTES - BOOTS_BYTES], (PAGE_ROOM + BOOTS_BYTES) as u64)
        };
        erase().map_err(|source| Error::File { path: self.path.clone(), source })
    }
}
