//! The run in one page of JSON.

use std::collections::BTreeMap;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::air::{Air, Counters, LinkReport};
use crate::swarm::ErrorKind;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoppedBecause {
    /// The distance to the known solution went below the limit and stayed there.
    Converged,
    /// The gradients of x, y and z did so, each by itself. How far the solution is remains unknown.
    SmallGradient,
    /// All rounds were run.
    MaxRounds,
    /// The user pressed Ctrl-C.
    Interrupted,
    /// A state could no longer be computed with, or the error had grown a thousandfold at the end.
    Diverged,
    /// The books of the ledger broke: mass was made or lost.
    BooksBroken,
    /// A board was lost, or differed from its shadow.
    BoardsFailed,
}

/// Counts of the channel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AirReport {
    /// Frames and copies by cause.
    #[serde(flatten)]
    pub counters: Counters,
    /// The links that lost the largest share.
    pub worst_links: Vec<LinkReport>,
}

impl AirReport {
    /// Links that a summary names.
    const LINKS: usize = 5;

    /// The report on `air`.
    pub fn on(air: &Air) -> Self {
        let counters = air.counters();
        Self { counters: counters.clone(), worst_links: counters.worst_links(Self::LINKS) }
    }
}

/// The error of a run, in the summary under the names of what it measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FinalError {
    /// The quantity that it measures.
    pub kind: ErrorKind,
    /// The first recorded round with an error below 1 %.
    pub rounds_to_one_percent: Option<u64>,
    /// The last recorded error.
    pub last: f64,
}

impl Serialize for FinalError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut keys = serializer.serialize_map(Some(3))?;
        keys.serialize_entry("error_kind", &self.kind)?;
        keys.serialize_entry(self.kind.one_percent_name(), &self.rounds_to_one_percent)?;
        // JSON has no NaN and no infinity.
        keys.serialize_entry(self.kind.name(), &self.last.is_finite().then_some(self.last))?;
        keys.end()
    }
}

/// The result of a run; `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// Version of fabswarm.
    pub version: &'static str,
    /// The problem.
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
    /// Rounds completed; a round that failed does not count.
    pub rounds: u64,
    /// The error in the end.
    #[serde(flatten)]
    pub error: FinalError,
    /// The last recorded consensus error.
    #[serde(serialize_with = "finite_or_null")]
    pub consensus_error: f64,
    /// The last recorded tracking defect.
    #[serde(serialize_with = "finite_or_null")]
    pub tracking_defect: f64,
    /// The most mass that one agent gave and others have not collected yet, where agents exchange frames.
    pub mass_waiting: Option<f64>,
    /// The part of such mass that is for members that are gone: down, or not in the epoch.
    pub mass_owed_to_gone: Option<f64>,
    /// Members that nobody has ever heard, where agents exchange frames: the answer is that of a swarm with them.
    pub unheard_members: Option<Vec<u16>>,
    /// Time the rounds took, with their metrics.
    pub seconds: f64,
    /// Rounds in that time.
    pub rounds_per_second: f64,
    /// Frames sent; each may be heard by many, as copies.
    pub frames_sent: u64,
    /// Copies of frames that were lost on their way to one who should have heard them.
    pub copies_lost: u64,
    /// Copies of frames that were heard and refused.
    pub copies_refused: u64,
    /// Digests of boards that were compared with their shadows'.
    pub digest_checks: u64,
    /// Digests that differed.
    pub digest_mismatches: u64,
    /// The most stack that a board used, in bytes, where boards report it.
    pub deepest_stack_bytes: Option<u32>,
    /// Frames and copies by outcome, where agents exchange frames.
    pub air: Option<AirReport>,
    /// Numbers that only the problem knows.
    pub task: BTreeMap<String, f64>,
}

impl RunSummary {
    /// The file's text.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain numbers and strings serialise") + "\n"
    }
}

/// JSON has no NaN and no infinity.
fn finite_or_null<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    value.is_finite().then_some(value).serialize(serializer)
}
