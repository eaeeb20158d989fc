//! What to type instead of a flag or command that does not exist.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use fabswarm_sim::scenario::{ScenarioCommand, keys};

/// Likeness from which a name is taken for a mistyped one.
const LIKE: f64 = 0.8;

/// What users of other tools look for, and the flags that this one has for it; the first that the command has are shown.
const OTHER_WORDS: [(&[&str], &[&str]); 11] = [
    (&["learning-rate", "lr", "step", "step-size", "alpha", "eta"], &["eta-x", "eta-y", "eta-z"]),
    (&["rounds", "iterations", "steps", "max-rounds"], &["rounds"]),
    (&["rounds", "iterations", "steps", "max-rounds", "epoch"], &["epochs"]),
    (&["nodes", "workers", "clients", "robots", "drones", "n"], &["agents"]),
    (&["loss", "drop", "drop-rate", "packet-loss"], &["iid-loss", "burst-loss"]),
    (&["graph", "network", "edges", "edge-list", "trace"], &["topology", "graphs"]),
    (&["output", "output-dir", "folder", "dir"], &["out"]),
    (&["batch-size"], &["batch"]),
    (&["dataset", "data-set"], &["data"]),
    (&["dirichlet", "rho"], &["dirichlet-alpha"]),
    (&["silent"], &["quiet"]),
];

/// Commands and flags that a Cargo feature brings, the feature, and whether this build has it.
const OF_FEATURES: [(&str, &str, bool); 11] = [
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
    ("--foxglove", "live", cfg!(feature = "live")),
];

/// What this build is without, for the end of its help.
pub(super) fn absent_commands() -> String {
    let absent = OF_FEATURES.iter().filter(|(_, _, is_there)| !is_there);
    let absent: Vec<String> = absent.map(|(name, feature, _)| format!("{name} ({feature})")).collect();
    match absent.is_empty() {
        true => String::new(),
        false => format!("Not in this build, and the Cargo feature that brings it: {}", absent.join(", ")),
    }
}

/// The message for a command or flag of a feature that this build is without.
fn absent(name: &str) -> Option<String> {
    let (_, feature, _) = OF_FEATURES.iter().find(|(known, _, is_there)| *known == name && !is_there)?;
    Some(format!(
        "this build of fabswarm has no `{name}`\nhelp: add the feature, `cargo run --release --features {feature} -- …`, or all of them, `--features full`"
    ))
}

/// The message for an unknown flag or command; other errors are clap's to explain.
pub(super) fn message(error: &clap::Error, command: &Command, arguments: &[OsString]) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (path, command) = chosen(command, arguments);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let argument = context(ContextKind::InvalidArg)?;
            let Some(flag) = argument.strip_prefix("--") else {
                return Some(format!(
                    "`{path}` does not take `{argument}`\nhelp: `{path} --help` lists what it takes"
                ));
            };
            let flag = flag.split('=').next().unwrap_or(flag);
            Some(absent(&format!("--{flag}")).unwrap_or_else(|| {
                format!("`{path}` has no flag `--{flag}`\nhelp: {}", flag_help(&path, command, flag))
            }))
        }
        ErrorKind::InvalidSubcommand => {
            let name = context(ContextKind::InvalidSubcommand)?;
            if let Some(message) = absent(name) {
                return Some(message);
            }
            let near = nearest(name, command.get_subcommands().map(Command::get_name));
            let help = match near {
                Some(near) => format!("did you mean `{path} {near}`?"),
                None => format!("`{path} --help` lists the commands"),
            };
            Some(format!("`{path}` has no command `{name}`\nhelp: {help}"))
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

/// What to type instead of `--{flag}`.
fn flag_help(path: &str, command: &Command, flag: &str) -> String {
    let flags: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    let list = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`--{name}`")).collect();
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => names.concat(),
        }
    };
    let by_other_word = OTHER_WORDS
        .iter()
        .find(|(words, names)| words.contains(&flag) && names.iter().all(|name| flags.contains(name)));
    if let Some((_, names)) = by_other_word {
        return format!("did you mean {}?", list(names));
    }
    let other_command = ScenarioCommand::ALL.into_iter().find(|other| {
        !path.ends_with(other.name()) && keys().iter().any(|key| key.flag == flag && other.takes(&key.path))
    });
    if let Some(other) = other_command.filter(|_| flags.contains(&"seed")) {
        return format!("it is a flag of `fabswarm {}`", other.name());
    }
    // `--eta` for `--eta-x`, `--states` for `--policy-evaluation-states`.
    let parts: Vec<&str> = flags
        .iter()
        .copied()
        .filter(|known| known.starts_with(&format!("{flag}-")) || known.ends_with(&format!("-{flag}")))
        .collect();
    if !parts.is_empty() && parts.len() <= 4 {
        return format!("did you mean {}?", list(&parts));
    }
    match nearest(flag, flags.iter().copied()) {
        Some(near) => format!("did you mean `--{near}`?"),
        None => format!("`{path} --help` lists all flags"),
    }
}

/// The candidate that `name` is a mistyped form of.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .filter(|candidate| {
            // One slip in a short name counts too.
            strsim::damerau_levenshtein(name, candidate) == 1
                || strsim::normalized_damerau_levenshtein(name, candidate) >= LIKE
        })
        .map(|candidate| (strsim::normalized_damerau_levenshtein(name, candidate), candidate))
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}
