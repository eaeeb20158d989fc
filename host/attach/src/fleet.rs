//! The boards of a swarm: how they start, and what happened to them.

pub(crate) mod events;
pub(crate) mod launch;
