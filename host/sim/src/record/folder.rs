//! The folder itself: made before the run, never on top of another.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Error;
use crate::whole_file;

/// A folder that belongs to one run. What cannot be written into it is [`Error::Unwritable`].
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Keeps other processes out; the system releases it when this one dies. Not every file system has locks.
    _lock: Option<File>,
}

impl RunFolder {
    /// Takes the new or empty folder at `path`.
    ///
    /// # Errors
    /// When it holds something, or cannot be made.
    pub fn at(path: &Path) -> Result<Self, Error> {
        Self::check_is_free(path)?;
        fs::create_dir_all(path).map_err(|source| Error::Unusable { path: path.to_owned(), source })?;
        Self::again(path)
    }

    /// Checks that `path` could be taken: that nothing is there, or an empty folder.
    ///
    /// # Errors
    /// When it is not empty, or not a folder.
    pub fn check_is_free(path: &Path) -> Result<(), Error> {
        match fs::read_dir(path).map(|mut entries| entries.next().is_some()) {
            Ok(true) => Err(Error::NotEmpty { path: path.to_owned() }),
            Ok(false) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(Error::Unusable { path: path.to_owned(), source }),
        }
    }

    /// Takes a folder that is there, as that of an earlier run to go on with it.
    ///
    /// # Errors
    /// When another process is writing to it.
    pub fn again(path: &Path) -> Result<Self, Error> {
        let lock = File::open(path).ok();
        if let Some(Err(TryLockError::WouldBlock)) = lock.as_ref().map(File::try_lock) {
            return Err(Error::Busy { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Makes the next numbered folder under `parent`, as in `runs/0007-policy-evaluation`.
    pub fn numbered(parent: &Path, name: &str) -> Result<Self, Error> {
        let unusable = |source| Error::Unusable { path: parent.to_owned(), source };
        fs::create_dir_all(parent).map_err(unusable)?;
        let mut number = 0_u32;
        for entry in fs::read_dir(parent).map_err(unusable)? {
            let entry = entry.map_err(unusable)?.file_name();
            let digits = entry.to_str().and_then(|entry| entry.split('-').next()?.parse().ok());
            number = number.max(digits.unwrap_or(0));
        }
        loop {
            number = number.saturating_add(1);
            let path = parent.join(format!("{number:04}-{name}"));
            match fs::create_dir(&path) {
                Ok(()) => return Self::again(&path),
                // Another run took that number first.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {}
                Err(error) => return Err(unusable(error)),
            }
        }
    }

    /// Writes a whole file, which gets its name once it is complete; until then what had that name before stays.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write_pieces(name, [Ok::<_, Error>(bytes)])
    }

    /// Writes a whole file piece by piece, as they come.
    ///
    /// # Errors
    /// The first piece that is an error, or [`Error::Unwritable`] when the disk is full; nothing is left of the file then.
    pub fn write_pieces<E: From<Error>>(
        &self,
        name: &str,
        pieces: impl IntoIterator<Item = Result<impl AsRef<[u8]>, E>>,
    ) -> Result<(), E> {
        let mut file = self.growing_file(name)?;
        let written = pieces.into_iter().try_for_each(|piece| {
            file.file.write_all(piece?.as_ref()).map_err(|source| E::from(file.unwritable()(source)))
        });
        if written.is_err() {
            // A partial file is of no use, least of all on a full disk.
            let _ = fs::remove_file(&file.part);
        }
        written?;
        Ok(file.complete()?)
    }

    /// Starts a file that grows during the run with `text`, in place of what an earlier run may have left of it.
    pub fn growing_file_from(&self, name: &str, text: &str) -> Result<GrowingFile, Error> {
        self.open(name, |part| {
            whole_file::write(part, text.as_bytes())?;
            File::options().append(true).open(part)
        })
    }

    /// The content of a file that grows, as an earlier run left it: its finished part, or else the whole.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn left_of(&self, name: &str) -> io::Result<Option<String>> {
        for name in [&part_of(name), name] {
            match fs::read_to_string(self.path.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                read => return read.map(Some),
            }
        }
        Ok(None)
    }

    /// Starts a file that grows during the run.
    pub fn growing_file(&self, name: &str) -> Result<GrowingFile, Error> {
        self.open(name, |part| File::create(part))
    }

    fn open(&self, name: &str, open: impl FnOnce(&Path) -> io::Result<File>) -> Result<GrowingFile, Error> {
        let (part, whole) = (self.path.join(part_of(name)), self.path.join(name));
        match open(&part) {
            Ok(file) => Ok(GrowingFile { file, part, whole }),
            Err(source) => Err(Error::Unwritable { path: whole, source }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The name of a file that is not complete yet.
fn part_of(name: &str) -> String {
    format!("{name}.part")
}

/// A file that is not complete yet. Without room for more, or once it is gone, it is [`Error::Unwritable`].
#[derive(Debug)]
pub struct GrowingFile {
    file: File,
    /// Its path now, and the one it gets in the end.
    part: PathBuf,
    whole: PathBuf,
}

impl GrowingFile {
    /// Writes `bytes` at its end.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        // A file without a name takes bytes without an error, and nobody finds them.
        let named = fs::metadata(&self.part);
        named.and_then(|_| self.file.write_all(bytes)).map_err(self.unwritable())
    }

    /// Gives the file its name, once nothing more is to come.
    pub fn complete(self) -> Result<(), Error> {
        fs::rename(&self.part, &self.whole).map_err(self.unwritable())
    }

    /// The error for a write to it that failed.
    pub fn unwritable(&self) -> impl FnOnce(io::Error) -> Error + use<> {
        let path = self.whole.clone();
        move |source| Error::Unwritable { path, source }
    }
}

impl Write for GrowingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_after_the_highest() {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join("0041-something-else")).unwrap();
        fs::create_dir(parent.path().join("notes")).unwrap();
        let folder = RunFolder::numbered(parent.path(), "sensor-trust").unwrap();
        assert!(folder.path().ends_with("0042-sensor-trust"));
        let next = RunFolder::numbered(parent.path(), "sensor-trust").unwrap();
        assert!(next.path().ends_with("0043-sensor-trust"));
    }

    #[test]
    fn a_file_grows_only_while_its_folder_is_there() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("run");
        let run = RunFolder::at(&path).unwrap();
        let mut file = run.growing_file("metrics.csv").unwrap();
        file.append(b"1\n").unwrap();
        fs::rename(&path, parent.path().join("elsewhere")).unwrap();
        let message = file.append(b"2\n").unwrap_err().to_string();
        assert!(message.contains("run/metrics.csv: No such file"), "{message}");
    }

    #[test]
    fn a_folder_that_is_being_written_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::at(folder.path()).unwrap();
        assert!(matches!(RunFolder::again(folder.path()), Err(Error::Busy { .. })));
        drop(run);
        assert!(RunFolder::again(folder.path()).is_ok());
    }
}
