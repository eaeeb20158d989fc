//! `fabswarm train` seen from outside, and swarms on data of one's own.

mod folder;
mod own_data;
mod refusals;
mod resume;
#[path = "../support/command.rs"]
mod support;
