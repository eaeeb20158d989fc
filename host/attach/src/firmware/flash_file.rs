//! The file behind a board's flash: its page first, then its storage.

use super::board_file::{BOOTS_BYTES, BoardFile};
use crate::{BoardKind, error};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::provisioning::PAGE_ROOM;
use std::{
    fs::File,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::PathBuf,
};

/// QEMU maps the whole PSRAM of its machine to the file and accepts no other size.
const PSRAM_BYTES: u64 = 16 << 20;

/// The mode of files with the key of a swarm: only the user has access.
pub(crate) const FILE_MODE: u32 = 0o600;

const NATIVE_STORAGE_BYTES: u64 = 64 * 1024;

/// The positions of page and storage in a board's flash and in the file behind it, whose first byte is that of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlashLayout {
    pub(crate) address: u64,
    pub(crate) page_bytes: u64,
    /// Where the storage begins in the file.
    storage_at: u64,
    storage_bytes: u64,
    file_bytes: u64,
}

impl FlashLayout {
    /// The layout of native boards, whose flash is nothing but the file.
    pub(crate) const NATIVE: Self = Self {
        address: 0,
        page_bytes: PAGE_ROOM as u64,
        storage_at: PAGE_ROOM as u64,
        storage_bytes: NATIVE_STORAGE_BYTES,
        file_bytes: PAGE_ROOM as u64 + NATIVE_STORAGE_BYTES,
    };

    /// The layout of boards of `kind`, from their `board.toml`.
    pub(crate) fn of(kind: BoardKind) -> Result<Self, Diagnostic> {
        if kind == BoardKind::Native {
            return Ok(Self::NATIVE);
        }
        let board = BoardFile::read(kind.board())?;
        let (page, storage) = (board.page, board.storage);
        let storage_at = storage.origin - page.origin;
        let file_bytes = if kind.is_qemu() { PSRAM_BYTES } else { storage_at + storage.bytes() };
        Ok(Self {
            address: page.origin,
            page_bytes: page.bytes(),
            storage_at,
            storage_bytes: storage.bytes(),
            file_bytes,
        })
    }
}

/// The flash of one board. It holds the swarm's key.
#[derive(Debug)]
pub(crate) struct FlashFile {
    pub(crate) path: PathBuf,
    layout: FlashLayout,
}

impl FlashFile {
    /// Creates a flash file with `page` in place of the page and erased storage. Only the user has access to it. It must not exist:
    /// its creator could read the key.
    pub(crate) fn create(path: PathBuf, layout: FlashLayout, page: &[u8]) -> Result<Self, Diagnostic> {
        let write = || {
            let file = File::options().write(true).create_new(true).mode(FILE_MODE).open(&path)?;
            file.set_len(layout.file_bytes)?;
            // Erased flash reads as ones.
            file.write_all_at(&vec![0xFF; layout.storage_bytes as usize], layout.storage_at)?;
            file.write_all_at(page, 0)
        };
        write().map_err(|source| error::file(&path, source))?;
        Ok(Self { path, layout })
    }

    /// Erases the agent's state. The page and the boot counter stay: a nonce must never be used twice.
    pub(crate) fn erase_state(&self) -> Result<(), Diagnostic> {
        let erase = || {
            let file = File::options().write(true).open(&self.path)?;
            let FlashLayout { storage_at, storage_bytes, .. } = self.layout;
            file.write_all_at(&vec![0xFF; (storage_bytes - BOOTS_BYTES) as usize], storage_at + BOOTS_BYTES)
        };
        erase().map_err(|source| error::file(&self.path, source))
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
        let flash = FlashFile::create(path.clone(), FlashLayout::NATIVE, b"page").unwrap();
        assert_eq!(std::fs::metadata(&flash.path).unwrap().permissions().mode() & 0o777, FILE_MODE);
        assert!(FlashFile::create(path, FlashLayout::NATIVE, b"page").is_err(), "it exists");
    }
}
