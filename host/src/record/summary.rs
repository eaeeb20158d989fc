//! The run in one page of JSON.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoppedBecause {
    /// The error went below the limit and stayed there.
    Converged,
    /// All rounds were run.
    MaxRounds,
    /// The user pressed Ctrl-C.
    Interrupted,
    /// A state was no longer finite.
    Diverged,
    /// A board was lost, or differed from its shadow.
    BoardsFailed,
}

/// What a run came to; `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Version of fabswarm.
    pub version: &'static str,
    /// What was solved.
    pub problem: &'static str,
    /// How.
    pub algorithm: &'static str,
    /// Over which links.
    pub topology: &'static str,
    /// By how many agents.
    pub agents: usize,
    /// From which seed.
    pub seed: u64,
    /// Why it ended.
    pub stopped_because: StoppedBecause,
    /// Rounds done.
    pub rounds: u64,
    /// The first recorded round with an error below 1 %.
    pub rounds_to_one_percent: Option<u64>,
    /// The last recorded error.
    #[serde(serialize_with = "finite_or_null")]
    pub final_relative_error: f64,
    /// The last recorded consensus error.
    #[serde(serialize_with = "finite_or_null")]
    pub consensus_error: f64,
    /// The last recorded tracking defect.
    #[serde(serialize_with = "finite_or_null")]
    pub tracking_defect: f64,
    /// Time the rounds took, with their metrics.
    pub seconds: f64,
    /// Rounds in that time.
    pub rounds_per_second: f64,
    /// Frames sent.
    pub frames_sent: u64,
    /// Frames that nobody heard.
    pub frames_lost: u64,
    /// Frames that were heard and refused.
    pub frames_refused: u64,
    /// Digests of boards that were compared with their shadows'.
    pub digest_checks: u64,
    /// Digests that differed.
    pub digest_mismatches: u64,
    /// Numbers that only the problem knows.
    pub task: BTreeMap<String, f64>,
}

impl Summary {
    /// The file's text.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain numbers and strings serialise") + "\n"
    }
}

/// JSON has no NaN and no infinity.
fn finite_or_null<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    value.is_finite().then_some(value).serialize(serializer)
}
