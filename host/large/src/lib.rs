//! Large agents: every agent of a host holds its own copy of one model, and all copies go through the device together.
//!
//! A model is written once, as a [`program::ModelProgram`]: a list of operations on *one* agent's parameters, with its
//! hand-derived backward pass. A [`device::Device`] runs that program for all agents at once: the CPU takes one agent per
//! task, CUDA one launch for all. Around it, [`fab`] mixes, tracks and steps exactly as `fabswarm_shared` does for small
//! agents; the conformance tests hold the two together.
//!
//! | paper | here |
//! |---|---|
//! | y, z of all agents | one buffer `[2, n, stride]`, y first |
//! | t, d of all agents | buffers of the same shape |
//! | x, one weight per training sample | `[samples]`, never exchanged (hyper-cleaning) |
//! | x, a regularisation strength | `[n, stride]` of one word, mixed as y and z are (hyper-parameter tuning) |

pub mod bench;
pub mod conformance;
pub mod data;
pub mod device;
pub mod fab;
pub mod layers;
pub mod mixing;
pub mod models;
pub mod parameters;
pub mod plan;
pub mod program;
pub mod real;
pub mod synthetic;
pub mod training;
