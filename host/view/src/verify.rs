//! Executes a recorded run again and compares every digest with the log.

use crate::message::Topic;
use crate::recorded_run::{ReadError, RecordedRun};
use fabswarm_sim::scenario;
use fabswarm_sim::swarm::{SwarmError, SwarmView, ViewRequest};
use fabswarm_sim::trial::{self, BuildError, IN_PROCESS};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Why a run cannot be executed again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// Its log cannot be read.
    #[error(transparent)]
    Log(#[from] ReadError),
    /// Its scenario cannot be read.
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    /// Its swarm cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The swarm stops before the run did.
    #[error(
        "executed again, the swarm stops in round {round}, and the log goes on to round {logged}: {source}"
    )]
    Stopped {
        /// Where it stops.
        round: u64,
        /// The next logged round.
        logged: u64,
        /// Why.
        source: SwarmError,
    },
    /// A logged view is none.
    #[error("{path}: a logged view cannot be read: {reason}\nhelp: name a log that this version of fabswarm has written", path = path.display())]
    View {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The log has no digest.
    #[error("{path}: the log holds no digest to compare\nhelp: runs of plain FAB and of more than 1024 agents have none; metrics.csv can be compared instead", path = path.display())]
    NoDigest {
        /// The folder.
        path: PathBuf,
    },
}

/// What a run that was executed again comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunVerdict {
    /// Rounds that were executed.
    pub rounds: u64,
    /// Digests that are equal.
    pub checks: u64,
    /// The first that is not.
    pub difference: Option<DigestDifference>,
}

/// A digest that is not as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "agent {agent} differs in round {round}: its logged digest is {logged:08x}, and it comes to {computed:08x}"
)]
pub struct DigestDifference {
    /// The first round.
    pub round: u64,
    /// The first agent in it.
    pub agent: usize,
    /// The digest in the log.
    pub logged: u32,
    /// The digest it should be.
    pub computed: u32,
}

#[derive(Deserialize)]
struct LoggedView {
    round: u64,
    agents: LoggedAgents,
}

#[derive(Deserialize)]
struct LoggedAgents {
    digest: Option<Vec<u32>>,
}

/// Executes the run in `folder` again, with all agents in this process, and compares the digests of every logged round. Boards
/// compute the same bits, so their runs are checked as well; those that keep their own time have `fabswarm boards verify`.
///
/// # Errors
/// When the log is damaged, or the run cannot be executed.
pub fn verify(folder: &Path) -> Result<RunVerdict, VerifyError> {
    let log = RecordedRun::read(folder)?;
    let mut scenario = scenario::resolve(Some(&folder.join("scenario.toml")), &[])?.scenario;
    scenario.swarm.boards = IN_PROCESS.to_owned();
    let mut swarm = trial::build(&scenario)?;
    let (mut checks, mut view) = (0, SwarmView::default());
    for message in log.about(Topic::Swarm) {
        let logged: LoggedView = serde_json::from_str(&message.json)
            .map_err(|error| VerifyError::View { path: folder.to_owned(), reason: error.to_string() })?;
        while swarm.round() < logged.round {
            let step = swarm.step();
            step.map_err(|source| VerifyError::Stopped {
                round: swarm.round(),
                logged: logged.round,
                source,
            })?;
        }
        swarm.view(&ViewRequest::default(), &mut view);
        let Some(digests) = logged.agents.digest else { continue };
        let computed: Vec<u32> = view.agents.iter().filter_map(|agent| agent.digest).collect();
        if digests.len() != computed.len() {
            let (has, needs, round) = (digests.len(), computed.len(), logged.round);
            let reason = format!("round {round} has {has} digests, and {needs} agents have one");
            return Err(VerifyError::View { path: folder.to_owned(), reason });
        }
        for (agent, (logged_digest, computed)) in digests.into_iter().zip(computed).enumerate() {
            if logged_digest != computed {
                let (round, logged) = (logged.round, logged_digest);
                let difference = Some(DigestDifference { round, agent, logged, computed });
                return Ok(RunVerdict { rounds: swarm.round(), checks, difference });
            }
            checks += 1;
        }
    }
    if checks == 0 {
        return Err(VerifyError::NoDigest { path: folder.to_owned() });
    }
    Ok(RunVerdict { rounds: swarm.round(), checks, difference: None })
}
