//! The `fabswarm` command: parses, calls the crates below it, prints.

pub mod bench;
pub mod cli;
