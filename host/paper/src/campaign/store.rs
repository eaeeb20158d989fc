//! Results on disk, one file each, named by a hash of the cell and the build.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::whole_file;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::experiment::failed;

/// The folder of results of this build.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    /// A hash of this program: whatever changes in it may change a result.
    build: u64,
}

impl Store {
    pub(super) fn open(folder: &Path) -> Result<Self, Diagnostic> {
        std::fs::create_dir_all(folder).map_err(failed("make", folder))?;
        let program = std::env::current_exe().map_err(failed("find", Path::new("this program")))?;
        let bytes = std::fs::read(&program).map_err(failed("read", &program))?;
        Ok(Self { folder: folder.to_owned(), build: hash(&bytes, 0) })
    }

    /// Reads the result of a cell; `None` where the file is missing or damaged.
    pub(super) fn read<T: DeserializeOwned>(&self, cell: &impl Serialize) -> Option<T> {
        let text = std::fs::read(self.path(cell)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Takes a cell for this process until the claim is dropped or the process dies; `None` where another has it.
    pub(super) fn claim(&self, cell: &impl Serialize) -> Result<Option<CellClaim>, Diagnostic> {
        let path = self.path(cell).with_extension("lock");
        let file = File::create(&path).map_err(failed("write", &path))?;
        // Where the file system has no locks, each process runs every cell.
        let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        Ok((!is_taken).then_some(CellClaim { path, _file: file }))
    }

    pub(super) fn keep(&self, cell: &impl Serialize, outcome: &impl Serialize) -> Result<(), Diagnostic> {
        let path = self.path(cell);
        let text = serde_json::to_vec(outcome).expect("bounded numbers are JSON");
        whole_file::write(&path, &text).map_err(failed("write", &path))
    }

    fn path(&self, cell: &impl Serialize) -> PathBuf {
        let cell = serde_json::to_vec(cell).expect("a cell is plain data");
        self.folder.join(format!("{:016x}.json", hash(&cell, self.build)))
    }
}

/// The lock on a cell.
#[derive(Debug)]
pub(super) struct CellClaim {
    path: PathBuf,
    _file: File,
}

impl Drop for CellClaim {
    fn drop(&mut self) {
        // A file that stays is locked again by the next process.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// FNV-1a.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed;
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_has_a_cell() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| Store::open(folder.path()).unwrap());
        let claim = one.claim(&"cell").unwrap();
        assert!(claim.is_some() && other.claim(&"cell").unwrap().is_none());
        assert!(other.claim(&"another").unwrap().is_some());
        drop(claim);
        assert!(other.claim(&"cell").unwrap().is_some());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
