//! The folder in which boards have their sockets, flash and logs while they run.
//!
//! It goes with the run. A host that is killed leaves its folder behind, and the next one clears it away: whoever still has a desk
//! holds the lock on it.

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

/// A younger folder may be one whose owner has yet to lock it.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// A folder that nobody else uses.
#[derive(Debug)]
pub(super) struct Desk {
    folder: TempDir,
    /// Held for as long as the desk is used.
    _lock: File,
}

impl Desk {
    /// A new desk where the system keeps what is temporary, after abandoned ones are cleared away.
    pub(super) fn new() -> Result<Self, Error> {
        let place = env::temp_dir();
        clear_away(&place, SystemTime::now());
        Self::within(&place).map_err(|source| Error::Desk { path: place, source })
    }

    fn within(place: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        let lock = File::create(folder.path().join(LOCK))?;
        lock.lock()?;
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the desks in `place` whose owners are gone. What cannot be removed stays: it is no reason not to run.
fn clear_away(place: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(place) else { return };
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
    fn only_abandoned_desks_are_cleared_away() {
        let place = tempfile::tempdir().unwrap();
        let later = SystemTime::now() + 2 * ABANDONED_AFTER;
        let used = Desk::within(place.path()).unwrap();
        let abandoned = Desk::within(place.path()).unwrap().folder.keep();
        // Somebody else's, whatever its name.
        let other = place.path().join("fabswarm-of-another-kind");
        fs::create_dir(&other).unwrap();

        clear_away(place.path(), SystemTime::now());
        assert!(abandoned.is_dir());
        clear_away(place.path(), later);
        assert!(!abandoned.exists() && used.path().is_dir() && other.is_dir());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
