//! `fabswarm train` seen from outside, and swarms on the user's data.

mod folder;
mod own_data;
mod refusals;
mod resume;
#[path = "../support/command.rs"]
mod support;
