//! Results on disk, one file each, named by a hash of what they depend on: the cell and the build.

use std::io;
use std::path::{Path, PathBuf};

use fabswarm_sim::whole_file;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why results cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {path}: {source}\nhelp: see that the folder exists and the disk is not full, or name another with --out", path = path.display())]
pub struct StoreError {
    verb: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// The folder of results of this build.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    /// A hash of this program: whatever changes in it may change a result.
    build: u64,
}

impl Store {
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        let failed = |verb, path: &Path| {
            let path = path.to_owned();
            move |source| StoreError { verb, path, source }
        };
        std::fs::create_dir_all(folder).map_err(failed("make", folder))?;
        let program = std::env::current_exe().map_err(failed("find", Path::new("this program")))?;
        let bytes = std::fs::read(&program).map_err(failed("read", &program))?;
        Ok(Self { folder: folder.to_owned(), build: hash(&bytes, 0) })
    }

    /// What was kept of a cell; nothing where the file is not whole.
    pub(crate) fn read<T: DeserializeOwned>(&self, cell: &impl Serialize) -> Option<T> {
        let text = std::fs::read(self.path(cell)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub(crate) fn keep(&self, cell: &impl Serialize, outcome: &impl Serialize) -> Result<(), StoreError> {
        let path = self.path(cell);
        let text = serde_json::to_vec(outcome).expect("bounded numbers are JSON");
        whole_file::write(&path, &text).map_err(|source| StoreError { verb: "write", path, source })
    }

    fn path(&self, cell: &impl Serialize) -> PathBuf {
        let cell = serde_json::to_vec(cell).expect("a cell is plain data");
        self.folder.join(format!("{:016x}.json", hash(&cell, self.build)))
    }
}

/// FNV-1a.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed;
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
