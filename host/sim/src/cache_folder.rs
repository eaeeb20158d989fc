//! The folder for downloads, which can be deleted at any time, and the sizes of folders.

use std::fs;
use std::path::{Path, PathBuf};

/// The cache folder: `FABSWARM_CACHE`, else `fabswarm` in `XDG_CACHE_HOME`, else in `~/.cache`, if any of these variables is set.
pub fn find() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("FABSWARM_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("fabswarm")))
        .or_else(|| variable("HOME").map(|folder| folder.join(".cache/fabswarm")))
}

/// Size of all files below `folder`. Files that disappear meanwhile count as empty.
pub fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
