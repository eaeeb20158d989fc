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

/// Like the standard `print!`, through [`output`].
macro_rules! out {
    ($($text:tt)+) => { $crate::cli::output::write(format_args!($($text)+)) };
}

/// Like the standard `println!`, through [`output`].
macro_rules! outln {
    ($($text:tt)+) => { $crate::cli::output::write(format_args!("{}\n", format_args!($($text)+))) };
}

/// An error with its remedy: `fault!("what happened"; "what to try")`, each with arguments as `format!` takes them.
macro_rules! fault {
    ($what:literal $(, $argument:expr)*; $remedy:literal $(, $more:expr)*) => {{
        let (what, remedy) = (format!($what $(, $argument)*), format!($remedy $(, $more)*));
        anyhow::Error::from(fabswarm_diagnostic::Diagnostic::new(what, remedy))
    }};
}

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
mod manual;
mod output;
#[cfg(feature = "large")]
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

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgMatches, Command};
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
    #[cfg(feature = "boards")]
    fabswarm_attach::show_notices(output::notice);
    let code = parse_and_run(&with_default_command(arguments.collect()), own).unwrap_or_else(|error| {
        // Each error's own text names its cause, before the line that helps.
        eprintln!("error: {error}");
        ExitCode::from(2)
    });
    match output::failure() {
        Some(error) => {
            eprintln!(
                "error: {}",
                fault!("cannot write to standard output: {error}"; "see that the disk is not full")
            );
            ExitCode::from(UNWRITTEN)
        }
        None => code,
    }
}

fn parse_and_run(arguments: &[OsString], own: Option<&OwnProblem>) -> Result<ExitCode> {
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => match suggest::explain(&error, &command(), arguments) {
            Some(error) => return Err(error),
            None => error.exit(),
        },
    };
    let (name, matches) = matches.subcommand().expect("clap asks for one of the sub-commands");
    #[cfg(feature = "boards")]
    if let Ok(Some(folder)) = matches.try_get_one::<std::path::PathBuf>("boards-dir") {
        fabswarm_attach::use_boards_folder(folder)?;
    }
    match COMMANDS.iter().find(|(known, ..)| *known == name) {
        Some((_, _, run)) => run(matches),
        None => run::run(matches, own),
    }
}

/// The exit code of a command that could not write its output.
const UNWRITTEN: u8 = 5;

/// A command: its name, how it is parsed, and what it does.
type NamedCommand = (&'static str, fn() -> Command, fn(&ArgMatches) -> Result<ExitCode>);

/// The commands of this build beside `run`.
const COMMANDS: &[NamedCommand] = &[
    ("bench", bench::command, bench::run),
    #[cfg(feature = "boards")]
    ("boards", boards::command, boards::run),
    #[cfg(feature = "large")]
    ("data", data::command, data::run),
    #[cfg(feature = "large")]
    ("train", train::command, train::run),
    #[cfg(feature = "mesh")]
    ("host", host::command, host::run),
    ("sweep", sweep::command, sweep::run),
    #[cfg(feature = "large")]
    ("paper", paper::command, paper::run),
    #[cfg(feature = "boards")]
    ("swarm", swarm::command, swarm::run),
    ("doctor", doctor::command, doctor::run),
    #[cfg(feature = "live")]
    ("show", show::command, show::run),
    ("verify", verify::command, verify::run),
    ("report", report::command, report::run),
    ("runs", runs::command, runs::run),
    ("manual", manual::command, manual::run),
];

fn command() -> Command {
    Command::new("fabswarm")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Distributed bilevel optimisation on swarms. Without a command: `fabswarm run`.")
        .override_usage("fabswarm [COMMAND] [OPTIONS]\n       fabswarm SCENARIO.toml [OPTIONS]")
        .subcommand_required(true)
        .subcommand(run::command())
        .subcommands(COMMANDS.iter().map(|(_, command, _)| command()))
        .after_help(suggest::absent_commands())
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
        assert!(COMMANDS.iter().all(|(name, command, _)| command().get_name() == *name));
    }
}
