//! Stands in for the commands of a Cargo feature that this build was made without.
//!
//! Each has what the command itself has, `command` and `run`, so that the feature decides only which of the two modules is used.

use anyhow::{Result, bail};
use clap::{Arg, Command};
use std::process::ExitCode;

/// A command that takes whatever arguments it is given.
fn command(name: &'static str, feature: &str) -> Command {
    Command::new(name)
        .about(format!("Not in this build: needs the Cargo feature `{feature}`"))
        .disable_help_flag(true)
        .arg(Arg::new("arguments").num_args(..).trailing_var_arg(true).allow_hyphen_values(true).hide(true))
}

fn run(name: &str, feature: &str) -> Result<ExitCode> {
    bail!(
        "this build of fabswarm has no `{name}`\nhelp: add the feature, `cargo run --release --features {feature} -- …`, or all of them, `--features full`"
    )
}

macro_rules! absent {
    ($module:ident, $name:literal, $feature:literal) => {
        pub(in crate::cli) mod $module {
            pub(in crate::cli) fn command() -> clap::Command {
                super::command($name, $feature)
            }

            pub(in crate::cli) fn run(_: &clap::ArgMatches) -> anyhow::Result<std::process::ExitCode> {
                super::run($name, $feature)
            }
        }
    };
}

#[cfg(not(feature = "boards"))]
absent!(bench_boards, "boards", "boards");
#[cfg(not(feature = "boards"))]
absent!(boards, "boards", "boards");
#[cfg(not(feature = "boards"))]
absent!(swarm, "swarm", "boards");
#[cfg(not(feature = "large"))]
absent!(bench_large, "large", "large");
#[cfg(not(feature = "large"))]
absent!(data, "data", "large");
#[cfg(not(feature = "large"))]
absent!(train, "train", "large");
#[cfg(not(feature = "mesh"))]
absent!(host, "host", "mesh");
#[cfg(not(feature = "paper"))]
absent!(paper, "paper", "paper");
#[cfg(not(feature = "live"))]
absent!(show, "show", "live");
