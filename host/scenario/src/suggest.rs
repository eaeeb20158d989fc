//! Suggests a flag or an argument in place of one that does not exist.

use super::command::ScenarioCommand;

/// Likeness from which a name is taken for a mistyped one.
const LIKE: f64 = 0.8;

/// Flags of other tools, and the flags of this one with the same purpose; the first that the command has are shown.
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

/// A suggestion for a flag that a command does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagSuggestion<'a> {
    /// One of these flags of the command.
    Flags(Vec<&'a str>),
    /// Another command has the flag.
    OtherCommand(ScenarioCommand),
    /// Nothing is like it.
    Unknown,
}

impl FlagSuggestion<'_> {
    /// The question whether one of its flags was meant, each written as `write` does.
    pub fn question(names: &[&str], write: impl Fn(&str) -> String) -> String {
        let names: Vec<String> = names.iter().map(|name| format!("`{}`", write(name))).collect();
        let list = match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => names.concat(),
        };
        format!("did you mean {list}?")
    }
}

/// Suggests a replacement of `flag` in a command with these `flags`, which reads the scenario of `command` if any.
pub fn suggest_flag<'a>(
    command: Option<ScenarioCommand>,
    flags: &[&'a str],
    flag: &str,
) -> FlagSuggestion<'a> {
    let of_command = |names: &[&str]| -> Option<Vec<&'a str>> {
        names.iter().map(|name| flags.iter().copied().find(|known| known == name)).collect()
    };
    let mut by_other_word = OTHER_WORDS.iter().filter(|(words, _)| words.contains(&flag));
    if let Some(names) = by_other_word.find_map(|(_, names)| of_command(names)) {
        return FlagSuggestion::Flags(names);
    }
    let mut others = ScenarioCommand::ALL.into_iter().filter(|other| Some(*other) != command);
    if command.is_some()
        && let Some(other) = others.find(|other| other.keys().any(|key| key.flag == flag))
    {
        return FlagSuggestion::OtherCommand(other);
    }
    // `--eta` for `--eta-x`, `--states` for `--policy-evaluation-states`.
    let is_part =
        |known: &&str| known.starts_with(&format!("{flag}-")) || known.ends_with(&format!("-{flag}"));
    let parts: Vec<&str> = flags.iter().copied().filter(is_part).collect();
    if !parts.is_empty() && parts.len() <= 4 {
        return FlagSuggestion::Flags(parts);
    }
    nearest(flag, flags.iter().copied())
        .map_or(FlagSuggestion::Unknown, |near| FlagSuggestion::Flags(vec![near]))
}

/// The candidate that `name` is a mistyped form of.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
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
