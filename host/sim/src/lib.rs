//! Swarms in one process: everything the default run needs, and nothing heavy.
//!
//! A [`scenario`] describes a run. A [`task`] draws its problem, the [`air`] carries frames between agents and does to them what
//! the scenario's faults say, a [`swarm`] steps the agents, and a [`trial`] runs a swarm to its goal while [`record`] writes the
//! run folder. Imports point that way only: `trial → record → swarm → method → air, task → scenario`, which is a crate of its own.
//!
//! ```
//! use fabswarm_sim::{scenario::Scenario, trial};
//!
//! let mut scenario = Scenario::default();
//! scenario.faults.iid_loss = 0.3;
//! let mut swarm = trial::build(&scenario)?;
//! let before = swarm.metrics();
//! for _ in 0..100 {
//!     swarm.step()?;
//! }
//! let after = swarm.metrics();
//! assert!(after.error < before.error);
//! // The ledger loses nothing, although the air loses three frames in ten.
//! assert_eq!(after.tracking_defect, 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A scenario file is read with [`scenario::resolve`], and [`trial::run`] records a run until it has converged.

pub mod air;
pub mod cache_folder;
mod cores;
mod csv_rows;
pub mod data_file;
pub mod method;
pub mod npz;
pub mod process_memory;
pub mod record;
pub mod recorded;
pub mod sealing;
pub mod swarm;
pub mod task;
pub mod trial;
pub mod whole_file;

pub use fabswarm_diagnostic::Diagnostic;
pub use fabswarm_scenario as scenario;
