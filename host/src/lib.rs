//! The host side of fabswarm: swarms in this process, what they run through, and what they leave behind.
pub mod record;
pub mod scenario;
pub mod swarm;
