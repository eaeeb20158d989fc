//! Executes a recorded run again and compares every digest with the log.

use crate::message::Topic;
use crate::recorded_run::{ReadError, RecordedFrame, RecordedRun};
use fabswarm_sim::air::Air;
use fabswarm_sim::scenario;
use fabswarm_sim::swarm::{Swarm, SwarmError, SwarmView, ViewRequest};
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
    /// Frames that are equal; of sealed ones, whose key nobody keeps, sender and length.
    pub frames: u64,
    /// The first that is not.
    pub difference: Option<RunDifference>,
}

/// Something that is not as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunDifference {
    /// The digest of a state.
    #[error(
        "agent {agent} differs in round {round}: its logged digest is {logged:08x}, and it comes to {computed:08x}"
    )]
    Digest {
        /// The first round.
        round: u64,
        /// The first agent in it.
        agent: usize,
        /// The digest in the log.
        logged: u32,
        /// The digest it should be.
        computed: u32,
    },
    /// A frame.
    #[error("the logged frame of agent {sender} in round {round} is not the one that it comes to")]
    Frame {
        /// The first round.
        round: u64,
        /// Whose frame it is.
        sender: usize,
    },
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

/// Executes the run in `folder` again, with all agents in this process, and compares all logged frames and the digests of every
/// logged round. Boards compute the same bits, so their runs are checked as well, but for those that kept their own time.
///
/// # Errors
/// When the log is damaged, or the run cannot be executed.
pub fn verify(folder: &Path) -> Result<RunVerdict, VerifyError> {
    let log = RecordedRun::read_with_frames(folder)?;
    let mut scenario = scenario::resolve(Some(&folder.join("scenario.toml")), &[])?.scenario;
    scenario.swarm.boards = IN_PROCESS.to_owned();
    let mut swarm = trial::build(&scenario)?;
    let mut logged_frames = LoggedFrames { rest: &log.frames, is_sealed: scenario.frames.sealed, equal: 0 };
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
            if let Some(sender) = logged_frames.first_difference(swarm.as_ref()) {
                let (rounds, frames) = (swarm.round(), logged_frames.equal);
                let difference = Some(RunDifference::Frame { round: rounds, sender });
                return Ok(RunVerdict { rounds, checks, frames, difference });
            }
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
                let difference = Some(RunDifference::Digest { round, agent, logged, computed });
                return Ok(RunVerdict {
                    rounds: swarm.round(),
                    checks,
                    frames: logged_frames.equal,
                    difference,
                });
            }
            checks += 1;
        }
    }
    if checks == 0 {
        return Err(VerifyError::NoDigest { path: folder.to_owned() });
    }
    Ok(RunVerdict { rounds: swarm.round(), checks, frames: logged_frames.equal, difference: None })
}

/// The frames of a log that were not compared yet.
struct LoggedFrames<'a> {
    rest: &'a [RecordedFrame],
    is_sealed: bool,
    equal: u64,
}

impl LoggedFrames<'_> {
    /// Compares the frames of the round that `swarm` has ended, and returns the sender of the first that differs.
    fn first_difference(&mut self, swarm: &dyn Swarm) -> Option<usize> {
        let is_of_round = |frame: &RecordedFrame| u64::from(frame.round) == swarm.round();
        let count = self.rest.iter().take_while(|frame| is_of_round(frame)).count();
        let (logged, rest) = self.rest.split_at(count);
        self.rest = rest;
        if logged.is_empty() {
            return None;
        }
        let mut computed = swarm.air().into_iter().flat_map(Air::broadcasts);
        for frame in logged {
            let is_equal = computed.next().is_some_and(|(sender, bytes)| {
                let is_same =
                    if self.is_sealed { frame.bytes.len() == bytes.len() } else { frame.bytes == bytes };
                sender == frame.sender && is_same
            });
            if !is_equal {
                return Some(frame.sender);
            }
            self.equal += 1;
        }
        computed.next().map(|(sender, _)| sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_differs_is_found() {
        let mut scenario = scenario::resolve(None, &[]).unwrap().scenario;
        (scenario.swarm.agents, scenario.frames.sealed) = (3, false);
        let mut swarm = trial::build(&scenario).unwrap();
        swarm.step().unwrap();
        let sent = swarm.air().unwrap().broadcasts();
        let recorded =
            |(sender, bytes): (usize, &[u8])| RecordedFrame { round: 1, sender, bytes: bytes.into() };
        let whole: Vec<RecordedFrame> = sent.map(recorded).collect();
        assert!(whole.len() >= 3);
        let compare = |logged: &[RecordedFrame], is_sealed| {
            let mut frames = LoggedFrames { rest: logged, is_sealed, equal: 0 };
            (frames.first_difference(swarm.as_ref()), frames.equal)
        };
        let count = whole.len() as u64;
        assert_eq!(compare(&whole, false), (None, count));
        let mut flipped = whole.clone();
        flipped[1].bytes[7] ^= 1;
        assert_eq!(compare(&flipped, false), (Some(flipped[1].sender), 1));
        // What is sealed has other bytes in every run.
        assert_eq!(compare(&flipped, true), (None, count));
        flipped[1].bytes.pop();
        assert_eq!(compare(&flipped, true), (Some(flipped[1].sender), 1));
        assert_eq!(compare(&whole[..2], false), (Some(whole[2].sender), 2), "one was not logged");
        // A log that has no room for more frames has none of the later rounds.
        assert_eq!(compare(&[], false), (None, 0));
    }
}
