//! Swarms in one process: everything the default run needs, and nothing heavy.
//!
//! A [`scenario`] describes a run. A [`task`] draws its problem, the [`air`] carries frames between agents and does to them what
//! the scenario's faults say, a [`swarm`] steps the agents, and a [`trial`] runs a swarm to its goal while [`record`] writes the
//! run folder. Imports point that way only: `trial → record → swarm → air, task → scenario`.

pub mod air;
pub mod cache_folder;
pub mod process_memory;
pub mod record;
pub mod recorded;
pub mod scenario;
pub mod sealing;
pub mod swarm;
pub mod task;
pub mod trial;
pub mod whole_file;
