//! Boards of a swarm on several hosts.
//!
//! The starter of a run has the air and the shadows of all agents. A host has boards: it is told everything that their shadows sent,
//! received and computed, lets the boards follow, and reports how they compare. Frames travel as the sealed bytes that the air
//! carries, once per host and round, however many boards receive them there.

mod gateway;
mod remote;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

pub use self::gateway::StartBoards;
pub(crate) use self::gateway::attend;
pub use self::remote::RemoteBoards;
use fabswarm_sim::swarm::{BoardChange, BoardView, BoardWarning, DigestCounts, ShadowRound};

/// An event of a shadow or a command to a board. Calls keep their order; a frame is an index into the [`BoardBatch`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum BoardCall {
    Sent { agent: usize, frame: usize },
    Received { agent: usize, sender: usize, frame: usize },
    Ended { agent: usize, round: ShadowRound },
    Kill { agent: usize, keeps_memory: bool },
    Restart { agent: usize, round: u32 },
    Freeze { agent: usize },
    Thaw { agent: usize },
    FollowLog { agent: usize },
    Follow,
    CatchUp,
}

/// Encoded calls, with every frame once.
#[derive(Debug, Serialize, Deserialize)]
struct BoardBatch<'a> {
    #[serde(borrow)]
    frames: Vec<&'a [u8]>,
    calls: Vec<BoardCall>,
}

/// Calls that were not yet sent to a host.
#[derive(Debug, Default)]
struct PendingCalls {
    frames: HashMap<Vec<u8>, usize>,
    calls: Vec<BoardCall>,
}

impl PendingCalls {
    fn frame(&mut self, bytes: &[u8]) -> usize {
        match self.frames.get(bytes) {
            Some(&number) => number,
            None => {
                let number = self.frames.len();
                self.frames.insert(bytes.to_vec(), number);
                number
            }
        }
    }

    /// Takes all calls, encoded.
    fn take(&mut self) -> Vec<u8> {
        let mut frames: Vec<(&[u8], usize)> =
            self.frames.iter().map(|(frame, &number)| (&**frame, number)).collect();
        frames.sort_unstable_by_key(|&(_, number)| number);
        let frames = frames.into_iter().map(|(frame, _)| frame).collect();
        let batch = BoardBatch { frames, calls: std::mem::take(&mut self.calls) };
        let bytes = postcard::to_extend(&batch, Vec::new()).expect("calls are plain data");
        self.frames.clear();
        bytes
    }
}

/// The state of the boards of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoardsReport {
    pub digests: DigestCounts,
    pub deepest_stack_bytes: Option<u32>,
    /// Each board, with its agent.
    pub boards: Vec<(usize, BoardView)>,
    /// Changes of boards since the last report.
    pub changes: Vec<BoardChange>,
    pub warnings: Vec<BoardWarning>,
    /// Why they cannot go on.
    pub failure: Option<String>,
    /// The user of the host wants it to end.
    pub is_leaving: bool,
}

#[cfg(test)]
mod tests;
