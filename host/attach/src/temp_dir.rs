//! The temporary folder with the boards' sockets, flash and logs.
//!
//! It is removed with the run. A host that is killed leaves its folder behind, and the next host removes it: the owner of a folder
//! that is in use holds a lock on it.

use super::Error;
use std::{
    env,
    fs::{self, File},
    io,
    path::Path,
    time::{Duration, SystemTime},
};
use tempfile::TempDir;

const PREFIX: &str = "fabswarm-";
const LOCK: &str = "lock";

/// The owner of a younger folder may not have locked it yet.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// A temporary folder that is locked while it is in use.
#[derive(Debug)]
pub(super) struct LockedTempDir {
    folder: TempDir,
    _lock: File,
}

impl LockedTempDir {
    /// Creates a folder in the system's temporary folder, after removing abandoned ones there.
    pub(super) fn new() -> Result<Self, Error> {
        let parent = env::temp_dir();
        remove_abandoned(&parent, SystemTime::now());
        Self::create_in(&parent).map_err(|source| Error::TempDir { path: parent, source })
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = File::create(folder.path().join(LOCK))?;
        lock.lock()?;
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders in `parent` whose owners are gone. One that cannot be removed stays: it is no reason not to run.
fn remove_abandoned(parent: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for folder in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let is_old = folder
            .metadata()
            .and_then(|found| found.modified())
            .is_ok_and(|made| now.duration_since(made).is_ok_and(|age| age > ABANDONED_AFTER));
        let is_free = |lock: File| lock.try_lock().is_ok();
        if is_old && File::open(folder.path().join(LOCK)).is_ok_and(is_free) {
            let _ = fs::remove_dir_all(folder.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_abandoned_folders_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let later = SystemTime::now() + 2 * ABANDONED_AFTER;
        let used = LockedTempDir::create_in(parent.path()).unwrap();
        let abandoned = LockedTempDir::create_in(parent.path()).unwrap().folder.keep();
        let foreign = parent.path().join("fabswarm-of-another-kind");
        fs::create_dir(&foreign).unwrap();

        remove_abandoned(parent.path(), SystemTime::now());
        assert!(abandoned.is_dir());
        remove_abandoned(parent.path(), later);
        assert!(!abandoned.exists() && used.path().is_dir() && foreign.is_dir());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
