//! The runs in a folder.

use fabswarm_sim::cache_folder::bytes_below;
use fabswarm_sim::record::{Error, RunFolder};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunState {
    /// Another process writes to its folder.
    Running,
    /// It was killed, or could not be written: it has no summary.
    Unfinished,
    /// It has a summary.
    Ended,
}

/// A run folder, at a glance.
#[derive(Clone, Debug)]
pub struct ListedRun {
    /// The folder.
    pub path: PathBuf,
    /// Its state.
    pub state: RunState,
    /// Its summary, or an empty object.
    pub summary: Value,
    /// Size of its files on disk.
    pub bytes: u64,
    /// When its folder was changed last.
    pub changed: SystemTime,
}

/// Lists the runs right under `parent`, in the order of their names. Other folders are left out.
///
/// # Errors
/// When `parent` cannot be read.
pub fn list(parent: &Path) -> io::Result<Vec<ListedRun>> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(parent)? {
        runs.extend(listed(&entry?.path()));
    }
    runs.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(runs)
}

/// The run at `path`, if it is one.
fn listed(path: &Path) -> Option<ListedRun> {
    // A symbolic link may lead anywhere, and `fabswarm runs clean` must not follow it.
    if !fs::symlink_metadata(path).ok()?.is_dir() || !path.join("scenario.toml").is_file() {
        return None;
    }
    let has_metrics = ["metrics.csv", "metrics.csv.part"].iter().any(|name| path.join(name).is_file());
    if !has_metrics {
        return None;
    }
    let text = fs::read_to_string(path.join("summary.json")).ok();
    let summary = text.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let state = match (&summary, RunFolder::again(path)) {
        (_, Err(Error::Busy { .. })) => RunState::Running,
        (Some(_), _) => RunState::Ended,
        (None, _) => RunState::Unfinished,
    };
    let changed =
        fs::metadata(path).and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    Some(ListedRun {
        path: path.to_owned(),
        state,
        summary: summary.unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        bytes: bytes_below(path),
        changed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_run_folders_are_listed() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str, files: &[(&str, &str)]| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            for (name, text) in files {
                fs::write(path.join(name), text).unwrap();
            }
            path
        };
        folder("notes", &[("todo.txt", "x")]);
        let ended = folder(
            "0002-b",
            &[("scenario.toml", ""), ("metrics.csv", "round\n"), ("summary.json", "{\"rounds\": 7}")],
        );
        folder("0001-a", &[("scenario.toml", ""), ("metrics.csv.part", "round\n")]);
        let busy = folder("0003-c", &[("scenario.toml", ""), ("metrics.csv.part", "round\n")]);
        let _lock = RunFolder::again(&busy).unwrap();
        std::os::unix::fs::symlink(&ended, parent.path().join("0004-link")).unwrap();
        let runs = list(parent.path()).unwrap();
        let states: Vec<_> =
            runs.iter().map(|run| (run.path.file_name().unwrap().to_str().unwrap(), run.state)).collect();
        let expected =
            [("0001-a", RunState::Unfinished), ("0002-b", RunState::Ended), ("0003-c", RunState::Running)];
        assert_eq!(states, expected);
        assert_eq!((&runs[1].summary["rounds"], runs[1].bytes), (&Value::from(7), 19));
        assert!(list(&parent.path().join("nowhere")).is_err());
    }
}
