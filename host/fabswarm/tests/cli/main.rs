//! The `fabswarm` command seen from outside: swarms in one process, and what can be made of their folders.

mod commands;
mod files;
#[path = "../support/outcome.rs"]
mod outcome;
#[cfg(feature = "large")]
mod paper;
mod readme;
mod run;
mod sweep;
mod view;
