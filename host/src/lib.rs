//! The host side of fabswarm: swarms in this process, what they run through, and what they leave behind.

pub mod air;
pub mod attach;
pub mod bench;
pub mod cli;
pub mod data;
pub mod large;
mod memory;
pub mod record;
pub mod recorded;
pub mod scenario;
pub mod swarm;
pub mod task;
pub mod trial;
mod whole_file;
