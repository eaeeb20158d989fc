//! Fuzz targets for every parser, for agents, for membership and for a whole swarm, run by `cargo +nightly fuzz run NAME` here.
//!
//! The workspace's tests run the same functions on thousands to a million inputs each, without a fuzzer.

pub mod swarm;
pub mod targets;
