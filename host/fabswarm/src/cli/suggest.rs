//! Suggestions for a flag or command that does not exist.

use std::ffi::OsString;

use anyhow::Error;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use fabswarm_sim::scenario::{FlagSuggestion, ScenarioCommand, nearest, suggest_flag};

/// Commands and flags that a Cargo feature brings, the feature, and whether this build has it.
const OF_FEATURES: [(&str, &str, bool); 10] = [
    ("boards", "boards", cfg!(feature = "boards")),
    ("swarm", "boards", cfg!(feature = "boards")),
    ("data", "large", cfg!(feature = "large")),
    ("train", "large", cfg!(feature = "large")),
    ("large", "large", cfg!(feature = "large")),
    ("paper", "large", cfg!(feature = "large")),
    ("host", "mesh", cfg!(feature = "mesh")),
    ("--hosts", "mesh", cfg!(feature = "mesh")),
    ("show", "live", cfg!(feature = "live")),
    ("--live", "live", cfg!(feature = "live")),
];

/// The commands that this build lacks, for the end of its help.
pub(super) fn absent_commands() -> String {
    let absent = OF_FEATURES.iter().filter(|(_, _, is_there)| !is_there);
    let absent: Vec<String> = absent.map(|(name, feature, _)| format!("{name} ({feature})")).collect();
    match absent.is_empty() {
        true => String::new(),
        false => format!("Not in this build, and the Cargo feature that brings it: {}", absent.join(", ")),
    }
}

/// The error for a command or flag of a feature that this build is without.
fn absent(name: &str) -> Option<Error> {
    let (_, feature, _) = OF_FEATURES.iter().find(|(known, _, is_there)| *known == name && !is_there)?;
    Some(fault!(
        "this build of fabswarm has no `{name}`";
        "add the feature, `cargo run --release --features {feature} -- …`, or all of them, `--features full`"
    ))
}

/// The error for an unknown flag or command; other errors are clap's to explain.
pub(super) fn explain(error: &clap::Error, command: &Command, arguments: &[OsString]) -> Option<Error> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (path, command) = chosen(command, arguments);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let argument = context(ContextKind::InvalidArg)?;
            let Some(flag) = argument.strip_prefix("--") else {
                return Some(fault!(
                    "`{path}` does not take `{argument}`"; "`{path} --help` lists what it takes"
                ));
            };
            let flag = flag.split('=').next().unwrap_or(flag);
            Some(absent(&format!("--{flag}")).unwrap_or_else(
                || fault!("`{path}` has no flag `--{flag}`"; "{}", flag_help(&path, command, flag)),
            ))
        }
        ErrorKind::InvalidSubcommand => {
            let name = context(ContextKind::InvalidSubcommand)?;
            if let Some(error) = absent(name) {
                return Some(error);
            }
            let near = nearest(name, command.get_subcommands().map(Command::get_name));
            let help = match near {
                Some(near) => format!("did you mean `{path} {near}`?"),
                None => format!("`{path} --help` lists the commands"),
            };
            Some(fault!("`{path}` has no command `{name}`"; "{help}"))
        }
        _ => None,
    }
}

/// The command that the arguments name, and how it is called.
fn chosen<'a>(root: &'a Command, arguments: &[OsString]) -> (String, &'a Command) {
    let (mut path, mut command) = (root.get_name().to_owned(), root);
    for name in arguments.iter().skip(1).map_while(|argument| argument.to_str()) {
        let Some(next) = command.find_subcommand(name) else { break };
        path = format!("{path} {name}");
        command = next;
    }
    (path, command)
}

/// Suggestions for `--{flag}`.
fn flag_help(path: &str, command: &Command, flag: &str) -> String {
    let flags: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    let is_read = |scenario: &ScenarioCommand| flags.contains(&"seed") && path.ends_with(scenario.name());
    match suggest_flag(ScenarioCommand::ALL.into_iter().find(is_read), &flags, flag) {
        FlagSuggestion::Flags(names) => FlagSuggestion::question(&names, |name| format!("--{name}")),
        FlagSuggestion::OtherCommand(other) => format!("it is a flag of `fabswarm {}`", other.name()),
        FlagSuggestion::Unknown => format!("`{path} --help` lists all flags"),
    }
}
