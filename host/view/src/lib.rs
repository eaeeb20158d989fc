//! Views of a run: messages about it, the log that holds them, and reports and replays from a log.
//!
//! ```text
//!   run ──▶ RunWatch ──▶ messages ──┬──▶ run.mcap ──▶ RecordedRun ──▶ report, replay
//!  (its loop)   (bounded channel)   └──▶ Audience: the live page
//! ```
//!
//! A run never waits for its audience: views are dropped where it falls behind. The round alone decides what is logged.

mod loss_window;
pub mod message;
mod recorded_run;
mod recorded_trial;
pub mod report;
mod run_files;
mod run_list;
mod run_log;
mod verify;
mod watch;

pub use recorded_run::{LogTail, RecordedRun};
pub use recorded_trial::{RecordedTrial, TrialArtifacts};
pub use run_files::RunFiles;
pub use run_list::{ListedRun, RunState, list};
pub use run_log::LOG_FILE;
pub use verify::{RunVerdict, verify};
pub use watch::{Audience, RunWatch};
