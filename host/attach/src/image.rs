//! The firmware that a board's process runs.

use super::Error;
use fabswarm_shared::provisioning::BOARD_MEMBERS;
use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

/// Firmware that is fresh is there before anybody wonders.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line that is printed unless it is dropped in time.
struct Notice(#[allow(dead_code, reason = "dropped, it tells the thread")] Sender<()>);

impl Notice {
    fn after(patience: Duration, line: String) -> Self {
        let (sender, dropped) = channel();
        thread::spawn(move || {
            if dropped.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{line}");
            }
        });
        Self(sender)
    }
}

/// A kind of board whose firmware can be built here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Image {
    /// The folder under `boards/`, the binary's name, and the name in `board.toml`.
    pub(super) board: &'static str,
    /// The compiler's target; the host's own where there is none.
    pub(super) target: Option<&'static str>,
    /// What its firmware is built with, other than the size of the swarm.
    pub(super) feature: Option<&'static str>,
}

impl Image {
    /// Builds the firmware for a swarm of so many members, unless it is fresh, and returns where it is. The sources must be
    /// where they were when this program was built.
    pub(super) fn build(&self, members: usize) -> Result<PathBuf, Error> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../boards").join(self.board);
        let failure = |messages: String| Error::Build { board: self.board, messages };
        if !folder.is_dir() {
            let place = folder.display();
            return Err(failure(format!(
                "its sources are not in {place}: run fabswarm beside its source tree"
            )));
        }
        let is_large = members > BOARD_MEMBERS;
        let features: Vec<&str> = is_large.then_some("large-swarm").into_iter().chain(self.feature).collect();
        // Firmware of every kind stays fresh side by side.
        let target_folder = Path::new("target").join(features.join("-"));
        let building = Notice::after(PATIENCE, format!("building the firmware of boards/{}", self.board));
        let output = Command::new("cargo")
            .args(["build", "--release", "--quiet", "--features", &features.join(","), "--target-dir"])
            .arg(&target_folder)
            .current_dir(&folder)
            // The board's own flags and target folder, whatever the host's build was told.
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .output()
            .map_err(|source| {
                let place = folder.display();
                failure(format!("cannot run cargo in {place}: {source}\nhelp: put Rust's cargo on the PATH"))
            })?;
        drop(building);
        if !output.status.success() {
            let mut messages = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            if let Some(target) = self.target.filter(|_| messages.contains("can't find crate for `core`")) {
                messages.push_str(&format!("\nadd its target with `rustup target add {target}`"));
            }
            return Err(failure(messages));
        }
        let target = folder.join(target_folder).join(self.target.unwrap_or_default());
        Ok(target.join("release").join(self.board))
    }
}
