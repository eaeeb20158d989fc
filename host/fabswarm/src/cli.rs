//! The command line: one file per sub-command, each parses, calls and prints.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | success |
//! | 1 | it ran without reaching the scenario's goal |
//! | 2 | bad input or output folder; nothing was run |
//! | 3 | the swarm diverged |
//! | 4 | a board was lost, or differs from its shadow |
//! | 5 | it ran, but its output could not be written |
//! | 6 | the books broke: mass was made or lost, and the answer cannot be trusted |
//! | 130 | interrupted |

/// Like the standard macro, through [`output`].
macro_rules! print {
    ($($text:tt)+) => { $crate::cli::output::write(format_args!($($text)+)) };
}

/// Like the standard macro, through [`output`].
macro_rules! println {
    ($($text:tt)+) => { $crate::cli::output::write(format_args!("{}\n", format_args!($($text)+))) };
}

#[cfg(not(all(
    feature = "boards",
    feature = "large",
    feature = "live",
    feature = "mesh",
    feature = "paper"
)))]
mod absent;
mod bench;
#[cfg(feature = "boards")]
mod boards;
#[cfg(feature = "large")]
mod data;
#[cfg(feature = "large")]
mod device;
mod doctor;
mod flags;
#[cfg(feature = "mesh")]
mod host;
mod interrupt;
mod live;
mod output;
#[cfg(feature = "paper")]
mod paper;
mod report;
mod run;
mod runs;
#[cfg(feature = "live")]
mod show;
mod suggest;
#[cfg(feature = "boards")]
mod swarm;
mod sweep;
#[cfg(feature = "large")]
mod train;
mod verify;

#[cfg(not(feature = "mesh"))]
use absent::host;
#[cfg(not(feature = "paper"))]
use absent::paper;
#[cfg(not(feature = "live"))]
use absent::show;
#[cfg(not(feature = "boards"))]
use absent::{boards, swarm};
#[cfg(not(feature = "large"))]
use absent::{data, train};

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Command;
use fabswarm_sim::task::OwnProblem;

/// Parses the command line, runs the command and returns its exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    run_command(arguments, None)
}

/// The command with one more problem, `--problem own`: what the `main` of a program returns that brings it.
pub fn main_with(arguments: impl Iterator<Item = OsString>, own: &OwnProblem) -> ExitCode {
    run_command(arguments, Some(own))
}

fn run_command(arguments: impl Iterator<Item = OsString>, own: Option<&OwnProblem>) -> ExitCode {
    let arguments = with_default_command(arguments.collect());
    let matches = match command().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => match suggest::message(&error, &command(), &arguments) {
            Some(message) => {
                eprintln!("error: {message}");
                return ExitCode::from(2);
            }
            None => error.exit(),
        },
    };
    let result = match matches.subcommand() {
        Some(("run", matches)) => run::run(matches, own),
        Some(("bench", matches)) => bench::run(matches),
        Some(("boards", matches)) => boards::run(matches),
        Some(("data", matches)) => data::run(matches),
        Some(("train", matches)) => train::run(matches),
        Some(("paper", matches)) => paper::run(matches),
        Some(("swarm", matches)) => swarm::run(matches),
        Some(("sweep", matches)) => sweep::run(matches),
        Some(("host", matches)) => host::run(matches),
        Some(("doctor", matches)) => doctor::run(matches),
        Some(("show", matches)) => show::run(matches),
        Some(("verify", matches)) => verify::run(matches),
        Some(("report", matches)) => report::run(matches),
        Some(("runs", matches)) => runs::run(matches),
        _ => unreachable!("clap asks for one of the sub-commands"),
    };
    let code = result.unwrap_or_else(|error| {
        // Each error's own text names its cause, before the line that helps.
        eprintln!("error: {error}");
        ExitCode::from(2)
    });
    match output::failure() {
        Some(error) => {
            eprintln!("error: cannot write to standard output: {error}\nhelp: see that the disk is not full");
            ExitCode::from(UNWRITTEN)
        }
        None => code,
    }
}

/// The exit code of a command that could not write its output.
const UNWRITTEN: u8 = 5;

fn command() -> Command {
    Command::new("fabswarm")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Distributed bilevel optimisation on swarms. Without a command: `fabswarm run`.")
        .override_usage("fabswarm [COMMAND] [OPTIONS]\n       fabswarm SCENARIO.toml [OPTIONS]")
        .subcommand_required(true)
        .subcommand(run::command())
        .subcommand(bench::command())
        .subcommand(boards::command())
        .subcommand(data::command())
        .subcommand(train::command())
        .subcommand(host::command())
        .subcommand(sweep::command())
        .subcommand(paper::command())
        .subcommand(swarm::command())
        .subcommand(doctor::command())
        .subcommand(show::command())
        .subcommand(verify::command())
        .subcommand(report::command())
        .subcommand(runs::command())
}

/// A bare `fabswarm`, with or without flags, runs the default scenario, and `fabswarm mine.toml` that file.
fn with_default_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let first = arguments.get(1).and_then(|argument| argument.to_str());
    let is_run = first.is_none_or(|first| {
        first.ends_with(".toml") || (first.starts_with("--") && !["--help", "--version"].contains(&first))
    });
    if is_run {
        arguments.insert(1.min(arguments.len()), "run".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_bare_command_is_a_run() {
        let with = |arguments: &[&str]| {
            let arguments = arguments.iter().map(OsString::from).collect();
            with_default_command(arguments)
                .into_iter()
                .map(|argument| argument.into_string().unwrap())
                .collect()
        };
        let expect = |arguments: &[&str], expected: &[&str]| {
            let got: Vec<String> = with(arguments);
            assert_eq!(got, expected);
        };
        expect(&["fabswarm"], &["fabswarm", "run"]);
        expect(&["fabswarm", "--seed", "3"], &["fabswarm", "run", "--seed", "3"]);
        expect(&["fabswarm", "--help"], &["fabswarm", "--help"]);
        expect(&["fabswarm", "bench"], &["fabswarm", "bench"]);
        expect(&["fabswarm", "mine.toml", "--seed", "3"], &["fabswarm", "run", "mine.toml", "--seed", "3"]);
    }
}
