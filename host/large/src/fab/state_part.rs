//! Parts of the state of a swarm: the tensors of a checkpoint, which hosts read and restore of each other.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A part of the state of all agents. Its text is the name of its tensor in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatePart {
    /// The strength of ‖w‖² for every vector of y and z.
    Decay,
    /// ψ of every sample.
    Logits,
    /// m of ψ.
    LogitMomentum,
    /// A part of y and z.
    Lower(VectorPart),
    /// A part of an exchanged x.
    Upper(VectorPart),
}

/// A part of vectors that agents exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VectorPart {
    /// v.
    Decisions,
    /// t.
    Trackers,
    /// d.
    Gradients,
    /// m.
    Momentum,
    /// Decisions that agents with a ledger sent in the last rounds.
    SentDecisions,
    /// Trackers that agents with a ledger sent in the last rounds.
    SentTrackers,
    /// Mass that waits on links.
    Mass,
}

impl StatePart {
    /// A part of the first set of exchanged vectors, y and z, or of the second one, x.
    pub(super) fn of_set(set: usize, part: VectorPart) -> Self {
        if set == 0 { StatePart::Lower(part) } else { StatePart::Upper(part) }
    }

    /// The number of the set of exchanged vectors that it is of, and which part of them.
    pub(super) fn in_set(self) -> Option<(usize, VectorPart)> {
        match self {
            StatePart::Lower(part) => Some((0, part)),
            StatePart::Upper(part) => Some((1, part)),
            StatePart::Decay | StatePart::Logits | StatePart::LogitMomentum => None,
        }
    }
}

impl fmt::Display for StatePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatePart::Decay => f.write_str("decay"),
            StatePart::Logits => f.write_str("x"),
            StatePart::LogitMomentum => f.write_str("x.m"),
            StatePart::Lower(part) => part.fmt(f),
            StatePart::Upper(part) => write!(f, "x.{part}"),
        }
    }
}

impl fmt::Display for VectorPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            VectorPart::Decisions => "v",
            VectorPart::Trackers => "t",
            VectorPart::Gradients => "d",
            VectorPart::Momentum => "m",
            VectorPart::SentDecisions => "history.v",
            VectorPart::SentTrackers => "history.t",
            VectorPart::Mass => "mass",
        })
    }
}
