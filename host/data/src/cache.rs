//! The folder of fetched files, and the check that they are unchanged.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::cache_folder;
use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};

use super::catalogue::{Entry, File};
use super::error::io_error;

/// The cache folder: one folder per entry.
#[derive(Debug, Clone)]
pub struct Cache {
    /// `None` where the environment names no folder, which only matters once something is looked for in it.
    root: Option<PathBuf>,
}

/// The presence of an entry in the cache, by file names alone; [`Cache::checked_folder`] compares the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheState {
    /// No file is there.
    Absent,
    /// Some files are there.
    Partial,
    /// All files are there.
    Present,
}

impl Cache {
    /// The cache where [`cache_folder::find`] finds it.
    pub fn from_environment() -> Self {
        Self { root: cache_folder::find() }
    }

    /// A cache in a folder of the caller's choice.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: Some(root.into()) }
    }

    /// Its folder.
    ///
    /// # Errors
    /// When the environment names none.
    pub fn root(&self) -> Result<&Path, Diagnostic> {
        let what = "no cache folder: neither XDG_CACHE_HOME nor HOME is set";
        self.root.as_deref().ok_or_else(|| Diagnostic::new(what, "set FABSWARM_CACHE to a folder"))
    }

    /// The folder of an entry in [`Cache::root`], whether it exists or not.
    pub fn folder(&self, entry: &Entry) -> Result<PathBuf, Diagnostic> {
        Ok(self.root()?.join(&entry.name))
    }

    /// Looks which files of an entry are there, without reading them.
    pub fn state(&self, entry: &Entry) -> CacheState {
        let Ok(folder) = self.folder(entry) else { return CacheState::Absent };
        match entry.files().filter(|file| locate(&folder, file).is_some()).count() {
            0 => CacheState::Absent,
            there if there == entry.files().count() => CacheState::Present,
            _ => CacheState::Partial,
        }
    }

    /// The folder of an entry whose files all have the right bytes.
    ///
    /// # Errors
    /// When a file is missing or differs; the message names the command that helps.
    pub fn checked_folder(&self, entry: &Entry) -> Result<PathBuf, Diagnostic> {
        let folder = self.folder(entry)?;
        for file in entry.files() {
            let path = locate(&folder, file).ok_or_else(|| {
                let what = format!("{} is missing", folder.join(&file.name).display());
                Diagnostic::new(what, format!("run `fabswarm data fetch {}`", entry.name))
            })?;
            if let Some(mismatch) = content_mismatch(&path, file)? {
                let what = format!("{} is damaged: {mismatch}", path.display());
                let remedy = format!("run `fabswarm data fetch {} --force`", entry.name);
                return Err(Diagnostic::new(what, remedy));
            }
        }
        Ok(folder)
    }

    /// Returns whether a file is there with the right bytes.
    pub(super) fn holds(&self, entry: &Entry, file: &File) -> Result<bool, Diagnostic> {
        match locate(&self.folder(entry)?, file) {
            Some(path) => Ok(content_mismatch(&path, file)?.is_none()),
            None => Ok(false),
        }
    }
}

/// Finds a file, compressed or not: a file that was brought by hand may be either.
fn locate(folder: &Path, file: &File) -> Option<PathBuf> {
    let path = folder.join(&file.name);
    if path.is_file() {
        return Some(path);
    }
    let plain = folder.join(file.name.strip_suffix(".gz")?);
    plain.is_file().then_some(plain)
}

/// Describes how the content of a file differs from the catalogue.
pub(super) fn content_mismatch(path: &Path, file: &File) -> Result<Option<String>, Diagnostic> {
    let found = match hash_content(path, file.bytes) {
        Ok((bytes, sha256)) if bytes == file.bytes && sha256 == file.sha256 => return Ok(None),
        Ok((bytes, _)) if bytes > file.bytes => format!("more than {} bytes", file.bytes),
        Ok((bytes, sha256)) => format!("{bytes} bytes with sha256 {sha256}"),
        // A cut or garbled gzip stream.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
            ) =>
        {
            format!("a broken gzip stream ({error})")
        }
        Err(error) => return Err(io_error(path)(error)),
    };
    Ok(Some(format!("expected {} bytes with sha256 {}, found {found}", file.bytes, file.sha256)))
}

/// Counts and hashes the content of a file, up to one byte more than `limit`.
fn hash_content(path: &Path, limit: u64) -> io::Result<(u64, String)> {
    let mut content = open_content(path)?.take(limit.saturating_add(1));
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                bytes += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let sha256 = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((bytes, sha256))
}

/// Opens a file, decompressing when its name ends in `.gz`.
pub(super) fn open_content(path: &Path) -> io::Result<Box<dyn Read>> {
    let file = fs::File::open(path)?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        Ok(Box::new(MultiGzDecoder::new(file)))
    } else {
        Ok(Box::new(file))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::catalogue::find;

    #[test]
    fn damaged_files_are_named_with_both_hashes_and_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let entry = find("mnist").unwrap();
        let folder = cache.folder(entry).unwrap();
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("train-images-idx3-ubyte"), b"cut").unwrap();
        assert_eq!(cache.state(entry), CacheState::Partial);
        let message = cache.checked_folder(entry).unwrap_err().to_string();
        for part in [
            "train-images-idx3-ubyte",
            "ba891046",
            "47040016",
            "3 bytes",
            "fabswarm data fetch mnist --force",
        ] {
            assert!(message.contains(part), "{part} not in {message}");
        }
    }

    #[test]
    fn compressed_and_plain_files_count_the_same() {
        let folder = tempfile::tempdir().unwrap();
        // sha256 of "abc", the first example of FIPS 180-2.
        let file = File {
            name: "letters.gz".to_owned(),
            inside: String::new(),
            bytes: 3,
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned(),
        };
        let plain = folder.path().join("letters");
        fs::write(&plain, b"abc").unwrap();
        assert_eq!(locate(folder.path(), &file), Some(plain.clone()));
        assert!(content_mismatch(&plain, &file).unwrap().is_none());

        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"abc").unwrap();
        let bytes = encoder.finish().unwrap();
        let compressed = folder.path().join("letters.gz");
        fs::write(&compressed, &bytes).unwrap();
        assert_eq!(locate(folder.path(), &file), Some(compressed.clone()));
        assert!(content_mismatch(&compressed, &file).unwrap().is_none());

        for cut in 0..bytes.len() {
            fs::write(&compressed, &bytes[..cut]).unwrap();
            assert!(content_mismatch(&compressed, &file).unwrap().is_some(), "cut at {cut}");
        }
        fs::write(&plain, b"abcd").unwrap();
        let mismatch = content_mismatch(&plain, &file).unwrap().unwrap();
        assert!(mismatch.ends_with("found more than 3 bytes"), "{mismatch}");
    }
}
