//! The `fabswarm` command: it parses, calls the crates below it, and prints.
//!
//! A program of yours gets all commands, and your problem as `--problem own`. `examples/own-problem` is such a program, to be copied.
//! Its `main` ends with these lines, where `draw` makes the data of all agents and boards compile the file of the problem:
//!
//! ```no_run
//! use fabswarm_sim::scenario::Scenario;
//! use fabswarm_sim::task::{OwnProblem, OwnTask};
//! use std::process::ExitCode;
//!
//! fn run<T: OwnTask>(draw: fn(&Scenario) -> Result<T, String>) -> ExitCode {
//!     fabswarm::cli::main_with(std::env::args_os(), &OwnProblem::new("src/problem.rs", draw))
//! }
//! ```
//!
//! [`cli`] has a file for each command. Other crates run the swarms:
//! `fabswarm_sim::trial` in this process, `fabswarm_attach` on boards, `fabswarm_large` in one batch.

// A closed pipe must not end a run: `cli` has macros of its own.
#![warn(clippy::print_stdout)]

mod bench;
pub mod cli;
