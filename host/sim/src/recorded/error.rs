//! What can be wrong with a recorded problem.

use crate::air::masks;
use crate::swarm::SwarmError;
use fabswarm_shared::graph::{Disconnected, NotStochastic};
use std::path::PathBuf;

/// Why a recorded problem cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the recorded problem {}: {source}\nhelp: name a JSON file with --recorded", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The snapshots cannot be written.
    #[error("cannot write the snapshots to {}: {source}\nhelp: name a file you may write with --snapshots", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not JSON, or a key is missing or has the wrong type.
    #[error("{} is not a recorded problem: {source}\nhelp: docs/recorded.md lists the keys it needs", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// The snapshots would overwrite the recorded file.
    #[error("--snapshots names the recorded file {} itself\nhelp: name another file: this one is the reference", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// Something in the file is wrong.
    #[error("{}: {source}\nhelp: correct it in the file; docs/recorded.md lists all keys", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What.
        source: Box<Error>,
    },
    /// An array has not the size that `n`, `S` and `d` ask for.
    #[error("`{key}` has {found} but needs {expected} (from n, S and d of the same file)")]
    Size {
        /// The key.
        key: String,
        /// What is there.
        found: String,
        /// What should be.
        expected: String,
    },
    /// A number is out of its range.
    #[error("`{key}` is {value} but must be {expected}")]
    Value {
        /// The key.
        key: String,
        /// What is there.
        value: String,
        /// What should be.
        expected: &'static str,
    },
    /// A mixing matrix is not stochastic.
    #[error("`{key}` is not a mixing matrix: {reason}")]
    Mixing {
        /// `A` or `B`.
        key: &'static str,
        /// Where it fails.
        reason: NotStochastic,
    },
    /// The file has neither `A` and `B` nor `graphs`.
    #[error(
        "the file has neither `A` and `B` (explicit weights) nor `graphs` (hex row masks); give one of both"
    )]
    NoGraph,
    /// The graphs cannot be read.
    #[error(transparent)]
    Masks(#[from] masks::Error),
    /// A snapshot is asked for after the last graph.
    #[error("a snapshot at k = {round} needs {round} graphs, but `graphs` has {graphs}")]
    TooFewGraphs {
        /// The snapshot's round.
        round: u64,
        /// How many graphs there are.
        graphs: usize,
    },
    /// Some window of rounds leaves agents without a path.
    #[error(
        "the graph is disconnected: in rounds {} to {} no information from agent {} reaches agent {}; FAB needs every \
         window of rounds to be jointly strongly connected",
        .0.rounds.start, .0.rounds.end - 1, .0.from, .0.to
    )]
    Disconnected(Disconnected),
    /// The steps are too large.
    #[error(transparent)]
    Swarm(#[from] SwarmError),
}

impl From<Disconnected> for Error {
    fn from(reason: Disconnected) -> Self {
        Self::Disconnected(reason)
    }
}
