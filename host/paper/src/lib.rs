//! The paper's methods on one swarm, its experiments, and a verdict on each of its claims.
//!
//! A [`method::Method`] works on the problems, graphs and noise that `fabswarm_sim` draws. Most are a [`rule`] (how agents mix
//! and descend) on an [`oracle`] (what they descend along); a rule is written once over [`row_ops::RowOps`] and runs on arrays or on a
//! [`tape`] that differentiates through it. An [`experiment::Experiment`] names a figure or table of the paper, and
//! [`campaign::run`] runs its cells on all cores, keeps each result, and writes figure, data and verdict.
//!
//! Imports point that way only: `page → campaign → experiment → method → rule → oracle → network → links`.

pub mod campaign;
pub mod experiment;
pub mod figure;
pub mod links;
pub mod method;
pub mod network;
pub mod oracle;
pub mod outcome;
pub mod page;
pub mod row_ops;
pub mod rule;
pub mod setting;
pub mod table;
pub mod tape;
#[cfg(feature = "large")]
pub mod training;
pub mod verdict;
