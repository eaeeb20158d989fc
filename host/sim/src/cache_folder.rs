//! The folder for downloads, which can be deleted at any time.

use std::path::PathBuf;

/// Finds the cache folder: `FABSWARM_CACHE`, else `fabswarm` in `XDG_CACHE_HOME`, else in `~/.cache`. Returns `None` where
/// none of these variables is set.
pub fn find() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("FABSWARM_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("fabswarm")))
        .or_else(|| variable("HOME").map(|folder| folder.join(".cache/fabswarm")))
}
