//! The temporary folder with the boards' sockets, flash and logs.
//!
//! It is private to the user, for flash holds the swarm's key, and is removed with the run. A host that is killed leaves its folder
//! behind, and the next host of the same user removes it. The file [`MARKER`] tells such a folder from any other, and its owner
//! holds a lock on that file.

use crate::error;
use crate::firmware::flash_file::FILE_MODE;
use fabswarm_diagnostic::Diagnostic;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::{
    env,
    fs::{self, File, Metadata, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
    time::{Duration, SystemTime},
};
use tempfile::TempDir;

const PREFIX: &str = "fabswarm-";
/// The file that marks a folder as ours.
const MARKER: &str = "lock";
/// The content of that file.
const MAGIC: &[u8] = b"temporary folder of fabswarm, format 1\n";
/// Only the user has access.
const FOLDER_MODE: u32 = 0o700;

/// The owner of a younger folder may not have locked it yet.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// A temporary folder that is locked while it is in use.
#[derive(Debug)]
pub(crate) struct LockedTempDir {
    folder: TempDir,
    _lock: File,
}

impl LockedTempDir {
    /// Creates a folder in the system's temporary folder, after removing abandoned ones there.
    pub(crate) fn new() -> Result<Self, Diagnostic> {
        let parent = env::temp_dir();
        remove_abandoned(&parent, SystemTime::now());
        Self::create_in(&parent).map_err(|source| error::temp_dir(&parent, source))
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(FOLDER_MODE))
            .tempdir_in(parent)?;
        let marker = folder.path().join(MARKER);
        let mut lock = File::options().write(true).create_new(true).mode(FILE_MODE).open(marker)?;
        lock.lock()?;
        lock.write_all(MAGIC)?;
        Ok(Self { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders in `parent` whose owners are gone. One that cannot be removed stays: it is no reason not to run.
fn remove_abandoned(parent: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        if is_abandoned(&entry.path(), now).unwrap_or_default() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether this program made `folder` for this user, long enough ago, and its owner is gone. Other users can put anything into a shared
/// temporary folder: links are not followed, a FIFO does not block, and only regular files are read.
fn is_abandoned(folder: &Path, now: SystemTime) -> io::Result<bool> {
    let is_own = |found: &Metadata| found.uid() == geteuid().as_raw();
    let found = fs::symlink_metadata(folder)?;
    let age = now.duration_since(found.modified()?).unwrap_or_default();
    if !found.is_dir() || !is_own(&found) || found.mode() & 0o777 != FOLDER_MODE || age <= ABANDONED_AFTER {
        return Ok(false);
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let marker = File::options().read(true).custom_flags(flags).open(folder.join(MARKER))?;
    let found = marker.metadata()?;
    if !found.is_file() || !is_own(&found) {
        return Ok(false);
    }
    let mut content = Vec::new();
    (&marker).take(MAGIC.len() as u64 + 1).read_to_end(&mut content)?;
    Ok(content == MAGIC && marker.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn later() -> SystemTime {
        SystemTime::now() + 2 * ABANDONED_AFTER
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn only_abandoned_folders_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let used = LockedTempDir::create_in(parent.path()).unwrap();
        assert_eq!((mode(used.path()), mode(&used.path().join(MARKER))), (FOLDER_MODE, FILE_MODE));
        let abandoned = LockedTempDir::create_in(parent.path()).unwrap().folder.keep();

        remove_abandoned(parent.path(), SystemTime::now());
        assert!(abandoned.is_dir());
        remove_abandoned(parent.path(), later());
        assert!(!abandoned.exists() && used.path().is_dir());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }

    #[test]
    fn folders_of_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str, mode: u32| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        };
        let bare = folder("fabswarm-bare", FOLDER_MODE);
        let foreign = folder("fabswarm-foreign", FOLDER_MODE);
        fs::write(foreign.join(MARKER), "somebody else's").unwrap();
        let public = folder("fabswarm-public", 0o755);
        fs::write(public.join(MARKER), MAGIC).unwrap();
        let linked = folder("fabswarm-linked", FOLDER_MODE);
        std::os::unix::fs::symlink(public.join(MARKER), linked.join(MARKER)).unwrap();
        let blocking = folder("fabswarm-blocking", FOLDER_MODE);
        assert!(Command::new("mkfifo").arg(blocking.join(MARKER)).status().unwrap().success());
        remove_abandoned(parent.path(), later());
        for kept in [bare, foreign, public, linked, blocking] {
            assert!(kept.is_dir(), "{} is gone", kept.display());
        }
    }
}
