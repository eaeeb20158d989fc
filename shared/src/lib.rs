//! FAB for swarms, in a form that fits a microcontroller.
//!
//! 1. **Sans-IO.** Nothing here awaits, allocates, reads a clock or prints. Bytes and ticks come in, bytes
//!    and events go out; simulator, firmware and tests are thin loops around this crate.
//! 2. **Bit-exact.** The same scenario gives the same bits on x86, Cortex-M and RISC-V: a fixed order of
//!    operations ([`linear`]), `libm` only ([`scalar`]), random numbers by name ([`rng`]).
//! 3. **One place for each equation.** [`problem`] has the local gradients, [`fab`] the updates of
//!    Algorithm 1, [`graph`] the mixing matrices, [`ledger`] the push that survives loss; [`agent`] puts them together and
//!    [`wire`] is what agents say.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod agent;
pub mod fab;
pub mod graph;
pub mod ledger;
pub mod linear;
pub mod packet;
pub mod problem;
pub mod provisioning;
pub mod rng;
pub mod scalar;
pub mod wire;

/// Hash of this crate's version and sources.
///
/// Two programs with the same id compute the same bits from the same input. Programs with different ids may still exchange
/// frames: whether they can is what [`wire::SCHEMA`] says.
pub const BUILD_ID: u64 = match u64::from_str_radix(env!("FABSWARM_BUILD_ID"), 16) {
    Ok(id) => id,
    Err(_) => panic!("the build script writes a hexadecimal number"),
};
