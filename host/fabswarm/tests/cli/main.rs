//! The `fabswarm` command seen from outside: swarms in one process, and what can be made of their folders.

mod commands;
mod files;
#[cfg(feature = "large")]
mod paper;
mod readme;
mod recorded;
mod run;
#[path = "../support/command.rs"]
mod support;
mod sweep;
mod view;
