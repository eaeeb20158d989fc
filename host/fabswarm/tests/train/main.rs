//! `fabswarm train` seen from outside, and swarms on data of one's own.

mod folder;
#[path = "../support/outcome.rs"]
mod outcome;
mod own_data;
mod refusals;
mod resume;
