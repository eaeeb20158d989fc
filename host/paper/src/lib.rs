//! The paper's methods on one swarm, its experiments, and a verdict on each of its claims.
//!
//! A `method::Method` works on the problems, graphs and noise that `fabswarm_sim` draws. Most are a rule on an oracle,
//! both of [`fabswarm_sim::method`]. An `experiment::Experiment` names a figure or table of the paper;
//! `campaign::run` runs its cells and keeps each result, and [`page`] writes figure, data and verdict. What is run is a
//! `workload::Workload`: a method on a `small` problem, or the `training` of a large model.
//!
//! Imports point that way only: `named → campaign → experiment → rule → workload → case`, and `small → method → network, bellman`.

mod bellman;
pub mod campaign;
mod case;
mod experiment;
mod experiment_config;
mod method;
pub mod named;
mod network;
pub mod page;
mod rule;
mod small;
mod spread;
mod table;
mod training;
mod verdict;
mod workload;
