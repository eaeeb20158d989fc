//! What a run looks like: messages about it, the log that holds them, and what can be made of a log later.
//!
//! ```text
//!   run ──▶ RunWatch ──▶ messages ──┬──▶ run.mcap ──▶ RecordedRun ──▶ report, replay
//!  (its loop)   (bounded channel)   └──▶ Audience: the live page
//! ```
//!
//! A run never waits for who looks at it: views for an audience are left out where it falls behind. What goes to the log is
//! decided by the round alone, so two runs of a scenario log the same rounds.

mod kept_run;
mod loss_window;
pub mod message;
mod recorded_run;
pub mod report;
mod run_files;
mod run_list;
mod run_log;
mod verify;
mod watch;

pub use kept_run::{KeptOutcome, KeptRun};
pub use recorded_run::{LogTail, RecordedFrame, RecordedRun};
pub use run_files::RunFiles;
pub use run_list::{ListedRun, RunState, list};
pub use run_log::{LOG_FILE, schema};
pub use verify::{RunVerdict, verify};
pub use watch::{Audience, RunWatch};
