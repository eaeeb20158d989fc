//! The temporary folder with the boards' sockets, flash and logs.
//!
//! It is private to the user, for flash holds the swarm's key, and is removed with the run. A host that is killed leaves its folder
//! behind, and the next host of the same user removes it. The file [`MARKER`] tells such a folder from any other, and its owner
//! holds a lock on that file.

use crate::error;
use crate::firmware::flash_file::FILE_MODE;
use fabswarm_diagnostic::Diagnostic;
use rustix::fs::{Mode, OFlags};
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
        let is_abandoned = |lock: File| lock.try_lock().is_ok();
        if open_marker(&entry.path(), now).is_some_and(is_abandoned) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Opens the marker of `folder`, if this program made the folder for this user, and long enough ago. Other users can put anything
/// into a shared temporary folder: links are not followed, and only regular files are opened for reading.
fn open_marker(folder: &Path, now: SystemTime) -> Option<File> {
    let is_own = |found: &Metadata| found.uid() == geteuid().as_raw();
    let found = fs::symlink_metadata(folder).ok()?;
    let age = now.duration_since(found.modified().ok()?).ok()?;
    if !found.is_dir() || !is_own(&found) || found.mode() & 0o777 != FOLDER_MODE || age <= ABANDONED_AFTER {
        return None;
    }
    let path = folder.join(MARKER);
    if !fs::symlink_metadata(&path).ok()?.is_file() {
        return None;
    }
    // The file may have been replaced since: without these flags, opening a FIFO would block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let marker = File::from(rustix::fs::open(&path, flags, Mode::empty()).ok()?);
    let found = marker.metadata().ok()?;
    let mut content = Vec::new();
    (&marker).take(MAGIC.len() as u64 + 1).read_to_end(&mut content).ok()?;
    (found.is_file() && is_own(&found) && content == MAGIC).then_some(marker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{process::Command, sync::mpsc, thread};

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
        remove_abandoned(parent.path(), later());
        for kept in [bare, foreign, public, linked] {
            assert!(kept.is_dir(), "{} is gone", kept.display());
        }
    }

    #[test]
    fn a_fifo_does_not_block() {
        let parent = tempfile::tempdir().unwrap();
        let folder = LockedTempDir::create_in(parent.path()).unwrap().folder.keep();
        let marker = folder.join(MARKER);
        fs::remove_file(&marker).unwrap();
        assert!(Command::new("mkfifo").arg(&marker).status().unwrap().success());
        let (sender, done) = mpsc::channel();
        let place = parent.path().to_owned();
        thread::spawn(move || {
            remove_abandoned(&place, later());
            sender.send(()).unwrap();
        });
        done.recv_timeout(Duration::from_secs(10)).expect("it does not return");
        assert!(folder.is_dir());
    }

    #[test]
    fn only_the_user_has_access() {
        let parent = tempfile::tempdir().unwrap();
        let used = LockedTempDir::create_in(parent.path()).unwrap();
        assert_eq!((mode(used.path()), mode(&used.path().join(MARKER))), (FOLDER_MODE, FILE_MODE));
    }
}
