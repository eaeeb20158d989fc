//! Large agents: every agent of a host holds its own copy of one model, and all copies go through the device together.
//!
//! A model is written once, as a `ModelProgram`: a list of operations on *one* agent's parameters, with its
//! hand-derived backward pass. A [`device::Device`] runs that program for all agents at once: the CPU takes one agent per
//! task, CUDA one launch for all. Around it, [`fab`] mixes, tracks and steps exactly as `fabswarm_shared` does for small
//! agents; the conformance tests hold the two together.
//!
//! Two agents that clean their training samples for a few rounds, on the CPU:
//!
//! ```
//! use fabswarm_large::device::cpu::Cpu;
//! use fabswarm_large::fab::{Exchange, Fab, FabConfig, RoundBatch, UpperLevel};
//! use fabswarm_large::models::Model;
//! use fabswarm_large::synthetic;
//!
//! # fn main() -> fabswarm_large::device::Result<()> {
//! let device = Cpu::<f32>::new();
//! let model = Model::mlp(8, 4, 2);
//! let task = UpperLevel::Cleaning { regularisation: 0.002 };
//! let config = FabConfig { steps: [1.0, 0.03, 0.03], ..FabConfig::new(2, task, 1, 2) };
//! let data = synthetic::dataset(&device, &model, 6)?;
//! let start = model.program(1).layout.start(1);
//! let mut swarm = Fab::new(device, &model, config, data, &start)?;
//!
//! // Samples by number in the data, and who hears whom.
//! let batch = RoundBatch { validation: vec![vec![0], vec![3]], training: vec![vec![1, 2], vec![4, 5]] };
//! let exchange = Exchange::uniform(&[vec![1], vec![0]]);
//! swarm.begin(&batch)?;
//! for _ in 0..3 {
//!     swarm.round(&exchange, &batch)?;
//! }
//! assert!(swarm.tracking_defect()? < 1e-5);
//! # Ok(())
//! # }
//! ```
//!
//! | paper | here |
//! |---|---|
//! | y, z of all agents | one buffer `[2, n, stride]`, y first |
//! | t, d of all agents | buffers of the same shape |
//! | x, one weight per training sample | `[samples]`, never exchanged (hyper-cleaning) |
//! | x, a regularisation strength | `[n, stride]`, one word used, mixed as y and z are (hyper-parameter tuning) |

pub mod bench;
pub mod conformance;
pub mod device;
pub mod fab;
mod layers;
mod mixing;
pub mod models;
mod parameters;
mod plan;
mod program;
mod real;
pub mod synthetic;
pub mod training;
