//! In what a board differs from its shadow.

pub(crate) mod divergence;
mod frame_fields;
pub(crate) mod state_dump;
