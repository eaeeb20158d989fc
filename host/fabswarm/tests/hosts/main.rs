//! Swarms on several hosts, as real processes on loopback.
#![cfg(feature = "mesh")]

mod strangers;
#[path = "../support/command.rs"]
mod support;
mod training;
