//! The host side of fabswarm.
pub mod data;
