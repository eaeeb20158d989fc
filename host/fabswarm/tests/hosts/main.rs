//! Swarms on several hosts, as real processes on loopback.
#![cfg(feature = "mesh")]

#[cfg(feature = "boards")]
mod gateways;
mod strangers;
mod training;
