//! Results on disk, one file each, named by a hash of the cell and the build.

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

/// FNV-1a.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed;
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
