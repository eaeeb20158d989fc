//! What the host reads of a board's `board.toml`.

use super::Error;
use fabswarm_shared::provisioning::PAGE_ROOM;
use std::path::{Path, PathBuf};
use toml_edit::{Document, Item};

/// A part of a board's flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlashRegion {
    /// Its address.
    pub(super) origin: u64,
    pub(super) bytes: u64,
}

/// A board's `board.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BoardFile {
    pub(super) page: FlashRegion,
    pub(super) storage: FlashRegion,
    /// RAM of its chip.
    pub(super) ram_bytes: u64,
    /// RAM that its stack must have.
    pub(super) stack_bytes: u64,
}

/// The board that is there to be copied.
const TEMPLATE: &str = "template";

/// The folder of a board's sources.
pub(super) fn folder(board: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../boards").join(board)
}

/// The boards in the source tree, sorted: the folders with a `board.toml`, but for the one to copy.
pub(super) fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder("")).into_iter().flatten().flatten();
    let boards = entries.filter(|entry| entry.path().join("board.toml").is_file());
    let mut names: Vec<String> = boards
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != TEMPLATE)
        .collect();
    names.sort();
    names
}

impl BoardFile {
    /// Reads the file of `board` from the source tree that this crate was built in.
    pub(super) fn read(board: &str) -> Result<Self, Error> {
        let path = folder(board).join("board.toml");
        let text = std::fs::read_to_string(&path)
            .map_err(|source| Error::BoardFile { path: path.clone(), reason: source.to_string() })?;
        Self::parse(&text).map_err(|reason| Error::BoardFile { path, reason })
    }

    /// Room for the page on `board`, where that is known here.
    pub(super) fn page_bytes(board: &str) -> Option<u64> {
        if board == "native" {
            return Some(PAGE_ROOM as u64);
        }
        Self::read(board).ok().map(|file| file.page.bytes)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file = Document::parse(text).map_err(|error| error.to_string())?;
        let integer = |table: &str, key: &str| {
            let value = file.get(table).and_then(|table| table.get(key)).and_then(Item::as_integer);
            let value = value.and_then(|value| u64::try_from(value).ok());
            value.ok_or_else(|| format!("[{table}] needs a number `{key}`"))
        };
        let region = |table: &str| -> Result<FlashRegion, String> {
            Ok(FlashRegion { origin: integer(table, "origin")?, bytes: 1024 * integer(table, "length_kib")? })
        };
        let (page, storage) = (region("page")?, region("storage")?);
        if storage.origin < page.origin + page.bytes {
            return Err("[storage] must begin behind [page]".to_owned());
        }
        let (ram_bytes, stack_bytes) =
            (1024 * integer("ram", "chip_kib")?, 1024 * integer("ram", "stack_kib")?);
        Ok(Self { page, storage, ram_bytes, stack_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_all_boards_are_read() {
        let pico = BoardFile::read("pico").unwrap();
        assert_eq!(pico.page, FlashRegion { origin: 0x101E_0000, bytes: 64 * 1024 });
        assert!(names().len() >= 3);
        for board in names() {
            let file = BoardFile::read(&board).unwrap();
            assert!(file.stack_bytes < file.ram_bytes, "{board}");
        }
    }

    #[test]
    fn errors_name_the_key() {
        let reason = |text: &str| BoardFile::parse(text).unwrap_err();
        assert_eq!(reason("[page]\norigin = 0"), "[page] needs a number `length_kib`");
        assert_eq!(reason("[page]\norigin = -1\nlength_kib = 4"), "[page] needs a number `origin`");
        let overlapping = "[page]\norigin = 0\nlength_kib = 4\n[storage]\norigin = 0\nlength_kib = 4";
        assert_eq!(reason(overlapping), "[storage] must begin behind [page]");
        let message = BoardFile::read("nothing").unwrap_err().to_string();
        assert!(message.contains("boards/nothing/board.toml") && message.contains("\nhelp: "), "{message}");
    }
}
