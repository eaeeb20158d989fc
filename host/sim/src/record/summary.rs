//! The run in one page of JSON.

use std::collections::BTreeMap;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::air::{Air, Counters, FrameCounts, LinkReport};
use crate::scenario::Scenario;
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

impl StoppedBecause {
    /// The exit code of a command whose run ended for this reason, and did what was asked or not.
    pub const fn exit_code(self, is_success: bool) -> u8 {
        match self {
            _ if is_success => 0,
            Self::Converged | Self::SmallGradient | Self::MaxRounds => 1,
            Self::Diverged => 3,
            Self::BoardsFailed => 4,
            Self::BooksBroken => 6,
            Self::Interrupted => 130,
        }
    }
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
        keys.serialize_entry(self.kind.name(), &self.last)?;
        keys.end()
    }
}

/// The section of `summary.json` that runs of all commands have. NaN and infinity are null in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommonSummary {
    /// Version of fabswarm.
    pub version: &'static str,
    /// The algorithm, by its name in a scenario.
    pub algorithm: &'static str,
    /// The topology, by its name in a scenario.
    pub topology: &'static str,
    /// Agents of the swarm.
    pub agents: usize,
    /// The seed of the run.
    pub seed: u64,
    /// Why it ended.
    pub stopped_because: StoppedBecause,
    /// Rounds completed; a round that failed does not count.
    pub rounds: u64,
    /// The last consensus error.
    pub consensus_error: f64,
    /// The last tracking defect.
    pub tracking_defect: f64,
    /// Time the rounds took, with their metrics, over all parts of a resumed run.
    pub seconds: f64,
    /// Rounds in that time.
    pub rounds_per_second: f64,
    /// Frames sent; each may be heard by many, as copies.
    pub frames_sent: u64,
    /// Copies of frames that were lost on their way to one who should have heard them.
    pub copies_lost: u64,
    /// Copies of frames that were heard and refused.
    pub copies_refused: u64,
    /// Frames and copies by outcome, where agents exchange frames.
    pub air: Option<AirReport>,
}

impl CommonSummary {
    /// The section of a run of `scenario`, whose states and air are still to be filled in.
    pub fn new(
        scenario: &Scenario,
        stopped_because: StoppedBecause,
        rounds: u64,
        seconds: f64,
        counts: FrameCounts,
    ) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            algorithm: scenario.algorithm.kind.word(),
            topology: scenario.network.topology.word(),
            agents: scenario.swarm.agents,
            seed: scenario.seed,
            stopped_because,
            rounds,
            consensus_error: f64::NAN,
            tracking_defect: f64::NAN,
            seconds,
            rounds_per_second: rounds as f64 / seconds.max(f64::MIN_POSITIVE),
            frames_sent: counts.sent,
            copies_lost: counts.lost,
            copies_refused: counts.refused,
            air: None,
        }
    }
}

/// The result of a trial; `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// The section that all commands write.
    #[serde(flatten)]
    pub common: CommonSummary,
    /// The problem.
    pub problem: &'static str,
    /// The error in the end.
    #[serde(flatten)]
    pub error: FinalError,
    /// The most mass that one agent gave and others have not collected yet, where agents exchange frames.
    pub mass_waiting: Option<f64>,
    /// The part of such mass that is for members that are gone: down, or not in the epoch.
    pub mass_owed_to_gone: Option<f64>,
    /// Members that nobody has ever heard, where agents exchange frames: the answer is that of a swarm with them.
    pub unheard_members: Option<Vec<u16>>,
    /// Digests of boards that were compared with their shadows'.
    pub digest_checks: u64,
    /// Digests that differed.
    pub digest_mismatches: u64,
    /// The most stack that a board used, in bytes, where boards report it.
    pub deepest_stack_bytes: Option<u32>,
    /// Numbers that only the problem knows.
    pub task: BTreeMap<String, f64>,
}

impl RunSummary {
    /// The file's text.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain numbers and strings serialise") + "\n"
    }
}
