//! The defmt log of an emulated board.

use crate::error;
use defmt_decoder::{DecodeError, Frame, Table};
use defmt_parser::Level;
use fabswarm_diagnostic::Diagnostic;
use object::{Object, ObjectSymbol};
use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// Stands for bytes that are no message.
const MALFORMED: &str = "(malformed log frame)";

/// The defmt strings of an image: a log holds only their numbers.
#[derive(Debug)]
pub(crate) struct LogTable(Table);

impl LogTable {
    pub(crate) fn of(board: &str, image: &Path) -> Result<Self, Diagnostic> {
        let bytes = fs::read(image).map_err(|source| error::file(image, source))?;
        match Table::parse(&bytes) {
            Ok(Some(table)) => Ok(Self(table)),
            Ok(None) => Err(error::image(board, image, "it has no log messages")),
            Err(reason) => Err(error::image(board, image, &reason.to_string())),
        }
    }

    /// Passes the whole messages of `pending` to `take`, each with its text, and keeps the rest. One that is malformed has only a text.
    fn decode(&self, pending: &mut Vec<u8>, mut take: impl FnMut(String, Option<Frame<'_>>)) {
        let mut decoder = self.0.new_stream_decoder();
        decoder.received(pending);
        loop {
            match decoder.decode() {
                Ok(frame) => take(frame.display(false).to_string(), Some(frame)),
                Err(DecodeError::UnexpectedEof) => break,
                Err(DecodeError::Malformed) => take(MALFORMED.to_owned(), None),
            }
        }
        // Bytes after the last frame delimiter belong to a message that is still incomplete.
        let whole = pending.iter().rposition(|&byte| byte == 0).map_or(0, |end| end + 1);
        pending.drain(..whole);
    }
}

/// Decodes the log of a board as it comes.
#[derive(Debug)]
pub struct LogDecoder {
    table: LogTable,
    /// Where the board keeps its log for a debug probe, by SEGGER's RTT.
    pub block_at: u64,
    pending: Vec<u8>,
}

impl LogDecoder {
    /// A decoder for boards called `board` that run `image`.
    ///
    /// # Errors
    /// If the image has no messages, or no place for them.
    pub fn new(board: &str, image: &Path) -> Result<Self, Diagnostic> {
        let table = LogTable::of(board, image)?;
        let bytes = fs::read(image).map_err(|source| error::file(image, source))?;
        let elf = object::File::parse(&*bytes).ok();
        let block = elf.as_ref().and_then(|elf| elf.symbol_by_name("_SEGGER_RTT"));
        let block_at = block
            .map(|block| block.address())
            .ok_or_else(|| error::image(board, image, "it does not log to debug probes"))?;
        Ok(Self { table, block_at, pending: Vec::new() })
    }

    /// Takes bytes of the log, and returns the messages that they complete.
    pub fn decode(&mut self, bytes: &[u8]) -> Vec<String> {
        self.pending.extend_from_slice(bytes);
        let mut messages = Vec::new();
        self.table.decode(&mut self.pending, |text, _| messages.push(text));
        messages
    }
}

/// One board's log, decoded as it grows.
#[derive(Debug)]
pub(crate) struct BoardLog {
    encoded: PathBuf,
    read: u64,
    pending: Vec<u8>,
    decoded: File,
    /// The last message of level error, such as a panic.
    pub(crate) last_error: Option<String>,
}

impl BoardLog {
    /// Decodes what the board appends to `encoded` into the file `decoded`.
    pub(crate) fn new(encoded: PathBuf, decoded: &Path) -> Result<Self, Diagnostic> {
        let file = File::options().create(true).append(true).open(decoded);
        let decoded = file.map_err(|source| error::file(decoded, source))?;
        Ok(Self { encoded, read: 0, pending: Vec::new(), decoded, last_error: None })
    }

    /// Deletes the encoded log, for a boot that begins a new one. Without this an emulator that is slow to start would truncate
    /// a log that was read a second time, and the first lines of the new one would be missed.
    pub(crate) fn start_over(&mut self) {
        let _ = fs::remove_file(&self.encoded);
        self.read = 0;
        self.pending.clear();
    }

    /// Decodes what was added since the last call; returns the messages of level `lowest` and above.
    pub(crate) fn decode(&mut self, table: &LogTable, lowest: Level) -> Vec<String> {
        let mut shown = Vec::new();
        let Ok(mut file) = File::open(&self.encoded) else { return shown };
        if file.seek(SeekFrom::Start(self.read)).is_err() {
            return shown;
        }
        self.read += file.read_to_end(&mut self.pending).unwrap_or_default() as u64;
        table.decode(&mut self.pending, |text, frame| {
            // A log that cannot be written is no reason to stop the swarm.
            let _ = writeln!(self.decoded, "{text}");
            let Some(frame) = frame else { return };
            if frame.level() == Some(Level::Error) {
                self.last_error = Some(frame.display_message().to_string());
            }
            if frame.level() >= Some(lowest) {
                shown.push(text);
            }
        });
        shown
    }
}
