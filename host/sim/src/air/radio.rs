//! Swarms that keep their own time, on a simulated radio.
//!
//! Here the schedule of a board ([`fabswarm_shared::slots`]) runs on clocks that differ, in an air where packets take time,
//! reach some agents and not others, and collide. [`RadioTiming`] has what a packet costs on a kind of radio,
//! [`RadioPlan`] what a swarm can expect of it before anything is flashed, and [`RadioAir`] is the simulation that plans are
//! compared with.

mod channel;
mod clock;
mod places;
mod plan;
mod simulation;
mod timing;

pub use channel::{ChannelCounts, ForeignTraffic};
pub use clock::ClockError;
pub use places::Places;
pub use plan::{Error, RadioNeeds, RadioPlan};
pub use simulation::{RadioAir, RadioEvent, RadioSettings};
pub use timing::{LoraSettings, RadioKind, RadioTiming};

#[cfg(test)]
mod tests;
