//! Swarms that keep their own time, in the slots of a radio ([`fabswarm_shared::slots`]).
//!
//! [`RadioTiming`] has what a packet costs on a kind of radio, [`RadioPlan`] what a swarm can expect of it before anything is
//! flashed. The tests compare plans with a simulated radio, in `tests/radio`.

mod plan;
mod timing;

pub use plan::{DUTY_WINDOW_US, RadioConfig, RadioPlan};
pub use timing::{LoraModulation, RadioKind, RadioTiming};
