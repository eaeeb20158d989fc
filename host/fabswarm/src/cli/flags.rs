//! A flag for every key of a scenario.

use clap::{Arg, ArgAction, ArgMatches, builder::PossibleValuesParser, value_parser};
use std::collections::BTreeMap;
use toml_edit::Value;

use fabswarm_sim::scenario::{self, Flag, ResolvedScenario, ScenarioCommand, ScenarioKey, ValueKind};

/// Keys without a flag.
const FILE_ONLY: [&str; 1] = ["version"];

/// The flag that prints the scenario instead of running it.
pub(super) fn print_scenario() -> Arg {
    Arg::new("print-scenario")
        .long("print-scenario")
        .action(ArgAction::SetTrue)
        .help("Print the scenario with file and flags applied, and do not run it")
}

/// The flags of the keys that `command` acts on.
pub(super) fn arguments(command: ScenarioCommand) -> impl Iterator<Item = Arg> {
    // The defaults of the command: `fabswarm train` overrides some of the file's.
    let resolved = scenario::resolve_for(command, None, &[])
        .expect("the defaults of every command are a valid scenario: a test holds it");
    let defaults: BTreeMap<_, _> = resolved.values().collect();
    keys(command).map(move |key| argument(key, defaults.get(key.path.as_str()).unwrap_or(&key.default)))
}

/// Prints the notes of a resolved scenario.
pub(super) fn print_notes(resolved: &ResolvedScenario) {
    for note in &resolved.notes {
        eprintln!("note: {note}");
    }
}

/// The flags given on the command line.
pub(super) fn given(command: ScenarioCommand, matches: &ArgMatches) -> Vec<Flag> {
    keys(command).filter_map(|key| value(key, matches).map(|value| Flag { key, value })).collect()
}

/// The flags of the keys that `command` acts on, each with as many values as the user likes.
pub(super) fn lists(command: ScenarioCommand) -> impl Iterator<Item = Arg> {
    keys(command).map(|key| {
        Arg::new(key.flag.as_str())
            .long(key.flag.as_str())
            .value_name("VALUES")
            .help(key.comment.trim_end_matches('.').to_owned())
            .help_heading(key.section().unwrap_or("everything"))
            .allow_hyphen_values(matches!(key.kind, ValueKind::Integer | ValueKind::Float))
    })
}

/// The keys that have a flag of `command`.
pub(super) fn keys(command: ScenarioCommand) -> impl Iterator<Item = &'static ScenarioKey> {
    command.keys().filter(|key| !FILE_ONLY.contains(&key.path.as_str()))
}

/// The flag of a key. Ranges are checked with the file's, so that both give the same message.
fn argument(key: &'static ScenarioKey, default: &str) -> Arg {
    let argument = Arg::new(key.flag.as_str())
        .long(key.flag.as_str())
        .help(format!("{} [default: {}]", key.comment.trim_end_matches('.'), default.trim_matches('"')))
        .hide_possible_values(true)
        .help_heading(key.section().unwrap_or("everything"))
        .allow_hyphen_values(matches!(key.kind, ValueKind::Integer | ValueKind::Float));
    match (key.choices, key.kind) {
        (Some(choices), _) => argument.value_name("WORD").value_parser(PossibleValuesParser::new(choices)),
        (None, ValueKind::Integer) => argument.value_name("N").value_parser(value_parser!(i64)),
        (None, ValueKind::Float) => argument.value_name("NUMBER").value_parser(value_parser!(f64)),
        (None, ValueKind::Boolean) => argument.value_name("BOOL").value_parser(value_parser!(bool)),
        (None, ValueKind::Text) => argument.value_name("TEXT"),
    }
}

/// What the command line sets `key` to, if it does.
fn value(key: &ScenarioKey, matches: &ArgMatches) -> Option<Value> {
    let id = key.flag.as_str();
    match key.kind {
        ValueKind::Integer => matches.get_one::<i64>(id).map(|&value| Value::from(value)),
        ValueKind::Float => matches.get_one::<f64>(id).map(|&value| Value::from(value)),
        ValueKind::Boolean => matches.get_one::<bool>(id).map(|&value| Value::from(value)),
        ValueKind::Text => matches.get_one::<String>(id).map(Value::from),
    }
}
