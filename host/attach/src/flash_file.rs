//! The file behind a board's flash: its page first, then its storage.

use super::{Error, temp_dir::FILE_MODE};
use fabswarm_shared::provisioning::{BufferTooSmall, PAGE_ROOM, Page, page_crc};
use std::{
    fs::File,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};
use zeroize::Zeroizing;

/// The emulated machine maps its whole PSRAM to the file and accepts no other size.
const FLASH_BYTES: u64 = 16 << 20;

/// The storage of the firmware, which follows the page.
const STORAGE_BYTES: usize = 64 * 1024;

/// The two sectors of the boot counter, at the start of the storage.
const BOOTS_BYTES: usize = 2 * 4096;

/// Encodes a page. It holds the swarm's key and is wiped when dropped.
pub(super) fn page_bytes(page: &Page<'_>) -> Result<Zeroizing<Vec<u8>>, Error> {
    let mut bytes = Zeroizing::new(vec![0; PAGE_ROOM]);
    let length = page
        .write(&mut bytes)
        .map_err(|BufferTooSmall| Error::PageTooLarge { agent: page.agent.id, room: PAGE_ROOM })?;
    bytes.truncate(length);
    Ok(bytes)
}

/// The flash of one board. It holds the swarm's key.
#[derive(Debug)]
pub(super) struct FlashFile {
    path: PathBuf,
    page_crc: u32,
}

impl FlashFile {
    /// Creates a flash file with `page` in place of the page and erased storage. Only the user has access to it. It must not exist:
    /// whoever made it could read the key.
    pub(super) fn create(path: PathBuf, page: &[u8]) -> Result<Self, Error> {
        let write = || {
            let file = File::options().write(true).create_new(true).mode(FILE_MODE).open(&path)?;
            file.set_len(FLASH_BYTES)?;
            // Erased flash reads as ones.
            file.write_all_at(&[0xFF; STORAGE_BYTES], PAGE_ROOM as u64)?;
            file.write_all_at(page, 0)
        };
        write().map_err(|source| Error::File { path: path.clone(), source })?;
        Ok(Self { path, page_crc: page_crc(page) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The checksum of the page.
    pub(super) fn page_crc(&self) -> u32 {
        self.page_crc
    }

    /// Erases the agent's state. The page and the boot counter stay: a nonce must never be used twice.
    pub(super) fn erase_state(&self) -> Result<(), Error> {
        let erase = || {
            let file = File::options().write(true).open(&self.path)?;
            file.write_all_at(&[0xFF; STORAGE_BYTES - BOOTS_BYTES], (PAGE_ROOM + BOOTS_BYTES) as u64)
        };
        erase().map_err(|source| Error::File { path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_user_can_read_a_flash_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.flash");
        let flash = FlashFile::create(path.clone(), b"page").unwrap();
        assert_eq!(std::fs::metadata(flash.path()).unwrap().permissions().mode() & 0o777, FILE_MODE);
        assert!(matches!(FlashFile::create(path, b"page"), Err(Error::File { .. })), "it exists");
    }
}
