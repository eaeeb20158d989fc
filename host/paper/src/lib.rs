//! The paper's methods on one swarm, its experiments, and a verdict on each of its claims.
//!
//! A [`method::Method`] works on the problems, graphs and noise that `fabswarm_sim` draws. Most are a rule on an oracle,
//! both of [`fabswarm_sim::method`]. An [`experiment::Experiment`] names a figure or table of the paper;
//! [`campaign::run`] runs its cells and keeps each result, and [`page`] writes figure, data and verdict. What is run is a
//! [`workload::Workload`]: a method on a [`small`] problem, or the `training` of a large model.
//!
//! Imports point that way only: `named → campaign → experiment → rule → workload → case`, and `small → method → network, bellman`.

pub mod bellman;
pub mod campaign;
pub mod case;
pub mod experiment;
pub mod experiment_config;
pub mod method;
pub mod named;
pub mod network;
pub mod page;
pub mod rule;
pub mod small;
mod spread;
pub mod table;
pub mod training;
pub mod verdict;
pub mod workload;
