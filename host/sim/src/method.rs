//! The methods that FAB is compared with: a [`Rule`] (how agents mix and descend) on an [`Oracle`] (what they descend along).
//!
//! A rule is written once over [`RowOps`]. It runs on [`Arrays`], and on a [`Tape`] that differentiates through its rounds.
//! Imports point that way only: `rule → row_ops → oracle → network → links`; the oracle of a double loop runs a rule on a tape.

mod links;
mod network;
mod oracle;
mod row_ops;
mod rule;
mod tape;

pub use links::{LinkWeights, Matrix};
pub use network::{LinkSequence, Network};
pub use oracle::{
    Hypergradient, InnerLoop, LowerLevel, MeanPenaltyGradient, Oracle, PenaltyGradient, SobaDirection,
};
pub use row_ops::{Arrays, RowOps};
pub use rule::{Rule, RuleKind};
pub use tape::{Tape, TapeValue};
