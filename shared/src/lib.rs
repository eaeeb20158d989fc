//! FAB for swarms, in a form that fits a microcontroller: agents that each hold a part of a bilevel problem agree on its
//! solution by broadcasting to the agents that hear them.
//!
//! The algorithm is due to Yaoshuai Ma, Xiao Wang, Wei Yao and Jin Zhang, *FAB: A First-Order AB-based Gradient Algorithm for
//! Distributed Bilevel Optimization over Time-Varying Directed Graphs* (preprint, 7 May 2026). [`fab`] says which of its equations
//! stand where. The paper's convergence theorem does not cover the [`ledger`], momentum, [`fab::Order::AdaptFirst`],
//! [`problem::PenaltyForm::Symmetric`] and [`fab::Phases`].
//!
//! 1. **Sans-IO.** Nothing here awaits, allocates, reads a clock or prints. Bytes and ticks come in, bytes
//!    and events go out; simulator, firmware and tests are thin loops around this crate.
//! 2. **Bit-exact.** The same scenario gives the same bits on x86 and Cortex-M (RISC-V is compiled, and was never run): a fixed order of
//!    operations (`linear`), `libm` only ([`scalar`]), random numbers by name ([`rng`]).
//! 3. **One place for each equation.** [`problem`] has the local gradients, [`fab`] the updates of
//!    Algorithm 1, [`graph`] the mixing matrices, [`ledger`] the push that survives loss; [`agent`] puts them together and
//!    [`wire`] is the format of what they send.
//!
//! # A tour
//!
//! A [`problem::Problem`] is one agent's part of the problem, an [`agent::Agent`] works on it. Its driver sends the frames
//! that the agent returns, passes on the frames that arrive, and ends each round. Here the link loses three frames in ten:
//!
//! ```
//! use fabswarm_shared::agent::{Agent, Config, Origin, PeerSlot};
//! use fabswarm_shared::heapless::Vec;
//! use fabswarm_shared::problem::PolicyEvaluation;
//! use fabswarm_shared::rng::{Purpose, Stream};
//!
//! // The value x of a chain with one state, discounted by a half, where the agents see rewards of 1 and 3:
//! // x = (1 + 3)/2 + x/2, so that x = 4.
//! let problem = |rewards| PolicyEvaluation::new(&[1.0], &[0.5], rewards);
//! // Room for decisions of 3 words [x | y | z], and for one peer.
//! type Small<'a> = Agent<PolicyEvaluation<'a, f32>, Vec<PeerSlot<3>, 1>, 3>;
//! let start = [0.0; 3];
//! let mut agents = [
//!     Small::new(Config::founder(0, 2), problem(&[1.0]), &start, Vec::new())?,
//!     Small::new(Config::founder(1, 2), problem(&[3.0]), &start, Vec::new())?,
//! ];
//!
//! let mut frame = [0; 64];
//! for round in 0..3000 {
//!     for sender in [0, 1] {
//!         let mut air = Stream::new(7, sender, round, Purpose::Air);
//!         let sender = sender as usize;
//!         while let Some(length) = agents[sender].poll_frame(&mut frame)? {
//!             if air.uniform_f64() >= 0.3 {
//!                 let _ = agents[1 - sender].receive(Origin::Clear, &frame[..length]);
//!             }
//!         }
//!     }
//!     for agent in &mut agents {
//!         assert_eq!(agent.end_round().fault, None);
//!     }
//! }
//! for agent in &agents {
//!     assert!((agent.decision()[0] - 4.0).abs() < 1e-3, "x = {}", agent.decision()[0]);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where to go from here:
//!
//! - [`agent::Config`] has what can be set: step sizes, who hears whom, lock-step or free-running rounds, narrow frames.
//! - [`graph`] has topologies and weights, [`rng`] the random numbers of all of them.
//! - [`wire::seal`] encrypts frames, [`wire::fragment`] cuts them into a radio's packets, [`wire::stream`] sends them over a
//!   serial line.
//! - [`slots`] says who sends when, where no host ends the rounds.
//! - [`provisioning::Page`] is what a host writes to a board's flash to make it a certain agent, [`packet`] what board and host
//!   exchange after that.
#![no_std]
#![forbid(unsafe_code)]

pub mod agent;
mod corroboration;
pub mod fab;
pub mod fnv;
pub mod graph;
pub mod ledger;
// Public for the host's engines and the boards' benchmarks, which must add in the same order; no part of the API.
#[doc(hidden)]
pub mod linear;
pub mod packet;
pub mod problem;
pub mod provisioning;
pub mod rng;
pub mod scalar;
pub mod slots;
pub mod wire;

/// Vectors of fixed capacity: the [`agent::Peers`] of an agent without a heap.
pub use heapless;

/// Hash of this crate's version and sources.
///
/// Two programs with the same id compute the same bits from the same input. Programs with different ids may still exchange
/// frames: they can if their [`wire::SCHEMA`] is the same.
pub const BUILD_ID: u64 = match u64::from_str_radix(env!("FABSWARM_BUILD_ID"), 16) {
    Ok(id) => id,
    Err(_) => panic!("the build script writes a hexadecimal number"),
};
