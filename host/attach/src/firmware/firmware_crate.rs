//! Builds the firmware that a board runs.

use super::boards_folder::{announce, boards_folder};
use crate::notice::notify;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::fnv;
use fabswarm_shared::problem::Problem;
use fabswarm_shared::provisioning::{BOARD_MEMBERS, BOARD_WORDS};
use fabswarm_sim::task::Task;
use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

/// Checking that firmware is up to date takes less.
const NOTICE_AFTER: Duration = Duration::from_secs(1);

/// A crate under `boards/` and the features its firmware is built with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirmwareCrate<'a> {
    /// The folder under `boards/`, the binary's name, and the name in `board.toml`.
    pub(crate) board: &'a str,
    /// The compiler's target; `None` for the host's own.
    pub(crate) target: Option<&'a str>,
    /// A feature to build with, besides the one for the size of the swarm.
    pub(crate) feature: Option<&'a str>,
}

/// The sizes that firmware is built for, and its problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirmwareConfig {
    pub(crate) members: usize,
    /// Words of a decision, or of a problem's working memory.
    pub(crate) words: usize,
    /// The file with a problem of the user's own.
    pub(crate) problem: Option<PathBuf>,
}

impl FirmwareConfig {
    /// The sizes of the default scenario.
    pub(crate) const USUAL: Self = Self { members: BOARD_MEMBERS, words: BOARD_WORDS, problem: None };

    /// The sizes of a task and a swarm of `members` agents.
    pub(crate) fn of(task: &Task<f32>, members: usize) -> Self {
        let needed = |agent: usize| {
            let problem = task.problem(agent);
            problem.shape().words().max(problem.scratch_words())
        };
        let words = (0..members).map(needed).max().unwrap_or(0);
        Self { members, words, problem: task.source().map(Path::to_owned) }
    }
}

impl FirmwareCrate<'_> {
    /// Builds the firmware, unless it is up to date, and returns the path of the image.
    pub(crate) fn build(&self, needs: &FirmwareConfig) -> Result<PathBuf, Diagnostic> {
        let boards = boards_folder()?;
        announce(boards);
        let folder = boards.join(self.board);
        let failure =
            |messages: &str| format!("the firmware of boards/{} does not build: {messages}", self.board);
        if !folder.is_dir() {
            return Err(Diagnostic::new(
                failure(&format!("its sources are not in {}", folder.display())),
                "name the folder with its sources: --boards-dir, or FABSWARM_BOARDS",
            ));
        }
        let is_large = needs.members > BOARD_MEMBERS;
        let features: Vec<&str> = is_large.then_some("large-swarm").into_iter().chain(self.feature).collect();
        // One target folder per set of features and size, so that building one does not make another out of date. None of them is the
        // common build folder: Cargo would wait for its own lock.
        let words = (needs.words > BOARD_WORDS).then(|| needs.words.to_string());
        let folder_of_words = words.as_ref().map(|words| format!("words-{words}")).unwrap_or_default();
        let own = |file: &PathBuf| format!("own-{:08x}", fnv::add_text(fnv::BASIS, &file.to_string_lossy()));
        let folder_of_problem = needs.problem.as_ref().map(own).unwrap_or_default();
        let target_folder = boards
            .join("target/images")
            .join(folder_of_problem)
            .join(features.join("-"))
            .join(folder_of_words);
        let is_special = words.is_some() || needs.problem.is_some();
        let (building, is_built) = channel::<()>();
        let notice = format!("building the firmware of boards/{}", self.board);
        thread::spawn(move || {
            if is_built.recv_timeout(NOTICE_AFTER) == Err(RecvTimeoutError::Timeout) {
                notify(&notice);
            }
        });
        let output = Command::new("cargo")
            .args(["build", "--release", "--quiet", "--features", &features.join(","), "--target-dir"])
            .arg(&target_folder)
            .current_dir(&folder)
            // The host's flags and target folder are not for the board.
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .envs(words.map(|words| ("FABSWARM_WORDS", words)))
            .env_remove("FABSWARM_PROBLEM")
            .envs(needs.problem.iter().map(|file| ("FABSWARM_PROBLEM", file)))
            // Cargo's file names do not depend on the environment: in the common folder two such builds would undo each other.
            .envs(is_special.then(|| ("CARGO_BUILD_BUILD_DIR", target_folder.join("build"))))
            .output()
            .map_err(|source| {
                let place = folder.display();
                let what = failure(&format!("cannot run cargo in {place}: {source}"));
                Diagnostic::new(what, "put Rust's cargo on the PATH")
            })?;
        drop(building);
        if !output.status.success() {
            let messages = String::from_utf8_lossy(&output.stderr);
            let remedy = match self.target {
                Some(target) if messages.contains("can't find crate for `core`") => {
                    format!("run `rustup target add {target}`")
                }
                _ => "run `cargo build --release` in that folder to see the whole output".to_owned(),
            };
            return Err(Diagnostic::new(failure(messages.trim()), remedy));
        }
        let target = target_folder.join(self.target.unwrap_or_default());
        Ok(target.join("release").join(self.board))
    }
}
