//! Replays a flight from the folder of its run.

use super::record::read;
use super::replay::{FlightFault, FlightReplay, ReportGap};
use super::{EarlySenders, RECORD, follow_entry};
use crate::Error;
use crate::firmware::check_sizes;
use fabswarm_sim::scenario;
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
    /// Rounds that were not reported.
    pub gaps: Vec<ReportGap>,
    /// Where the flight first differs from its shadows, or cannot be followed.
    pub fault: Option<FlightFault>,
}

/// Replays the flight in a run's folder on shadows.
///
/// # Errors
/// When the folder does not hold a flight that can be read.
pub fn verify(folder: &Path) -> Result<FlightVerdict, Error> {
    let entries = read(&folder.join("boards").join(RECORD))?;
    let scenario = scenario::resolve(Some(&folder.join("scenario.toml")), &[])?.scenario;
    let ExactAgents { task, setup, .. } = trial::exact_agents(&scenario)?;
    let agents = scenario.swarm.agents;
    check_sizes(&task, agents)?;
    let mut replay = FlightReplay::new(&Arc::new(task), &setup, agents)?;
    let mut early = vec![EarlySenders::default(); agents];
    let follow = || {
        for entry in entries {
            let early = early
                .get_mut(usize::from(entry.agent))
                .ok_or_else(|| FlightFault::stranger(entry.agent, agents))?;
            follow_entry(&mut replay, entry, early)?;
            replay.follow()?;
        }
        replay.finish()
    };
    let fault = follow().err();
    let FlightReplay { checks, uncompared, .. } = replay;
    Ok(FlightVerdict { rounds: replay.rounds(), checks, uncompared, gaps: replay.gaps, fault })
}
