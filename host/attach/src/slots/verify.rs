//! Replays a flight from the folder of its run.

use super::RECORD;
use super::record::read;
use super::replay::{FlightReplay, ReportGap};
use crate::firmware::check_sizes;
use crate::provision::read_scenario;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::trial::{self, ExactAgents};
use std::path::Path;
use std::sync::Arc;

/// The result of replaying a flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlightVerdict {
    /// Rounds of the swarm.
    pub rounds: u32,
    /// Digests that were compared and are equal.
    pub checks: u64,
    /// Digests that were reported and could not be compared: those behind a gap, and those of the last rounds, whose frames were
    /// not all reported when the run ended.
    pub uncompared: u64,
    /// Which rounds were not reported, and of whom.
    pub gaps: Vec<String>,
    /// Where the flight first differs from its shadows, or cannot be followed.
    pub fault: Option<Diagnostic>,
}

/// Replays the flight in a run's folder on shadows.
///
/// # Errors
/// When the folder does not hold a flight that can be read.
pub fn verify(folder: &Path) -> Result<FlightVerdict, Diagnostic> {
    let entries = read(&folder.join("boards").join(RECORD))?;
    let scenario = read_scenario(Some(&folder.join("scenario.toml")))?;
    let ExactAgents { task, setup, .. } = trial::exact_agents(&scenario)?;
    let agents = scenario.swarm.agents;
    check_sizes(&task, agents)?;
    let mut replay = FlightReplay::new(&Arc::new(task), &setup, agents)?;
    let followed = entries.into_iter().try_for_each(|entry| {
        replay.push(entry)?;
        replay.follow()
    });
    let fault = followed.and_then(|()| replay.finish()).err().map(Diagnostic::from);
    Ok(FlightVerdict {
        rounds: replay.rounds(),
        checks: replay.checks,
        uncompared: replay.uncompared,
        gaps: replay.gaps.iter().map(ReportGap::to_string).collect(),
        fault,
    })
}
