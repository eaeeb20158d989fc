//! A flag for every key of a scenario.

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{live, output};
use fabswarm_sim::scenario::{self, Flag, ResolvedScenario, ScenarioCommand, ScenarioKey, ValueKind};

/// Keys that most runs set: `-h` shows these alone.
const COMMON: [&str; 13] = [
    "seed",
    "swarm.agents",
    "swarm.rounds",
    "swarm.boards",
    "problem.kind",
    "algorithm.kind",
    "network.topology",
    "faults.iid_loss",
    "output.out",
    "training.data",
    "training.model",
    "training.method",
    "training.epochs",
];

/// `--name VALUE`.
pub(super) fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// `--name`.
pub(super) fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// A file or folder.
pub(super) fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).value_name(value).help(help).value_parser(value_parser!(PathBuf))
}

/// `--name PATH`.
pub(super) fn path_option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    path(name, value, help).long(name)
}

/// The scenario file of a run.
pub(super) fn scenario_file() -> Arg {
    path("scenario", "SCENARIO", "Scenario file (TOML); flags lie over it")
}

/// Arguments of every command that runs a scenario, beside its keys.
pub(super) fn of_runs() -> impl Iterator<Item = Arg> {
    let print = switch("print-scenario", "Print the scenario with file and flags applied, and do not run it");
    [scenario_file(), print, quiet()].into_iter().chain(live::argument())
}

/// The folder of a run.
pub(super) fn run_folder() -> Arg {
    path("run", "RUN", "Folder of the run").required(true)
}

/// The flag that leaves only warnings and errors.
pub(super) fn quiet() -> Arg {
    switch("quiet", "Print nothing but warnings and errors").short('q')
}

/// Prints nothing but warnings and errors from now on, if `--quiet` was given.
pub(super) fn apply_quiet(matches: &ArgMatches) {
    if matches.get_flag("quiet") {
        output::be_quiet();
    }
}

/// The folder that boards are built from, in builds that know them.
pub(super) fn boards_dir() -> Option<Arg> {
    let help = "Folder with the boards' sources [default: FABSWARM_BOARDS, or boards/ of the source tree around the working directory]";
    let argument = path_option("boards-dir", "FOLDER", help).global(true).hide_short_help(true);
    cfg!(feature = "boards").then_some(argument)
}

/// The flags of the keys that `command` acts on.
pub(super) fn arguments(command: ScenarioCommand) -> impl Iterator<Item = Arg> {
    // The defaults of the command: `fabswarm train` overrides some of the file's.
    let resolved = scenario::resolve_for(command, None, &[])
        .expect("the defaults of every command are a valid scenario: a test holds it");
    let defaults: BTreeMap<_, _> = resolved.values().collect();
    keys(command).map(move |key| {
        let default = defaults.get(key.path).map_or(key.default, String::as_str).trim_matches('"');
        // An empty text is explained by the comment.
        let shown = |space: &str| match default {
            "" => String::new(),
            default => format!("{space}[default: {default}]"),
        };
        argument(key)
            .value_name(value_name(key))
            .help(format!("{}{}", short_help(command, key), shown(" ")))
            .long_help(format!("{}{}", long_help(command, key), shown("\n")))
    })
}

/// Prints the notes of a resolved scenario. Returns whether that is all: `--print-scenario` prints it instead of running it.
pub(super) fn is_printed(matches: &ArgMatches, resolved: &ResolvedScenario) -> bool {
    let is_printed = matches.get_flag("print-scenario");
    if !is_printed {
        apply_quiet(matches);
    }
    for note in resolved.notes.iter().filter(|_| !output::is_quiet()) {
        eprintln!("note: {note}");
    }
    if is_printed {
        out!("{}", resolved.to_toml());
    }
    is_printed
}

/// The flags given on the command line.
pub(super) fn given(command: ScenarioCommand, matches: &ArgMatches) -> Result<Vec<Flag>> {
    let texts = keys(command).filter_map(|key| Some((key, matches.get_one::<String>(key.flag)?)));
    Ok(texts.map(|(key, text)| Flag::parse(key, text)).collect::<Result<_, _>>()?)
}

/// The flags of the keys that `command` acts on, each with as many values as the user likes.
pub(super) fn lists(command: ScenarioCommand) -> impl Iterator<Item = Arg> {
    keys(command).map(move |key| match key.path {
        "output.out" => argument(key)
            .value_name(value_name(key))
            .help("Folder of the sweep; a folder with a part of this sweep is continued"),
        _ => argument(key)
            .value_name("VALUES")
            .help(short_help(command, key))
            .long_help(long_help(command, key)),
    })
}

/// The keys that have a flag of `command`: a file alone has a version.
pub(super) fn keys(command: ScenarioCommand) -> impl Iterator<Item = &'static ScenarioKey> {
    command.keys().filter(|key| key.path != "version")
}

/// The flag of a key. Its value is checked as the file's is, so that both give the same message.
fn argument(key: &'static ScenarioKey) -> Arg {
    let argument = Arg::new(key.flag)
        .long(key.flag)
        .allow_hyphen_values(matches!(key.kind, ValueKind::Integer | ValueKind::Float));
    if COMMON.contains(&key.path) {
        return argument;
    }
    argument.hide_short_help(true).help_heading(format!("[{}]", key.section().unwrap_or("everything")))
}

fn value_name(key: &ScenarioKey) -> &'static str {
    match (key.choices, key.kind) {
        _ if key.is_file => "FILE",
        _ if key.path == "training.data" => "NAME|FILE",
        _ if key.path == "training.model" => "NAME|PATH",
        _ if key.path == "output.out" => "FOLDER",
        (Some(_), _) => "WORD",
        (None, ValueKind::Integer) => "N",
        (None, ValueKind::Float) => "NUMBER",
        (None, ValueKind::Boolean) => "BOOL",
        (None, ValueKind::Text) => "TEXT",
    }
}

/// The first sentence on a key, and the words it takes.
fn short_help(command: ScenarioCommand, key: &ScenarioKey) -> String {
    let comment = key.comment;
    let end = comment.find([':', ';', '(']).unwrap_or(comment.len());
    let sentence = comment[..end].split(". ").next().unwrap_or_default().trim_end_matches('.').trim_end();
    match command.choices(key) {
        Some(choices) => format!("{sentence}: {}", choices.join(", ")),
        None => sentence.to_owned(),
    }
}

/// All that is known about a key.
fn long_help(command: ScenarioCommand, key: &ScenarioKey) -> String {
    let words = command.choices(key).map(|words| format!("\n[values: {}]", words.join(", ")));
    format!("{}{}", key.comment.trim_end_matches('.'), words.unwrap_or_default())
}
