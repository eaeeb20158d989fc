//! The folder itself: made before the run, never on top of another.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Error;

/// A folder that belongs to one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Takes the new or empty folder at `path`.
    ///
    /// # Errors
    /// When it holds something, or cannot be made.
    pub fn at(path: &Path) -> Result<Self, Error> {
        let unusable = |source| Error::Unusable { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(unusable)?;
        if fs::read_dir(path).map_err(unusable)?.next().is_some() {
            return Err(Error::NotEmpty { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Makes the next numbered folder under `parent`, as in `runs/0007-policy-evaluation`.
    ///
    /// # Errors
    /// When it cannot be made.
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
                Ok(()) => return Ok(Self { path }),
                // Another run took that number first.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {}
                Err(error) => return Err(unusable(error)),
            }
        }
    }

    /// Writes a whole file, which gets its name once it is complete.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let mut part = self.part(name)?;
        part.file.write_all(bytes).map_err(|source| part.path.unwritable(source))?;
        part.path.complete()
    }

    /// Starts a file that grows during the run.
    pub(super) fn part(&self, name: &str) -> Result<Part, Error> {
        let path = PartPath { part: self.path.join(format!("{name}.part")), whole: self.path.join(name) };
        let file = File::create(&path.part).map_err(|source| path.unwritable(source))?;
        Ok(Part { file, path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn into_path(self) -> PathBuf {
        self.path
    }
}

/// A file that is not complete yet.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) file: File,
    pub(super) path: PartPath,
}

/// Its name now, and the one it gets in the end.
#[derive(Debug)]
pub(super) struct PartPath {
    part: PathBuf,
    whole: PathBuf,
}

impl PartPath {
    /// Gives the file its name.
    pub(super) fn complete(self) -> Result<(), Error> {
        fs::rename(&self.part, &self.whole).map_err(|source| self.unwritable(source))
    }

    pub(super) fn unwritable(&self, source: io::Error) -> Error {
        Error::Unwritable { path: self.whole.clone(), source }
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
    fn a_folder_with_something_in_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(RunFolder::at(folder.path()).is_ok());
        fs::write(folder.path().join("notes.txt"), "mine").unwrap();
        assert!(matches!(RunFolder::at(folder.path()), Err(Error::NotEmpty { .. })));
    }
}
