//! The keys of a scenario, read from `default.toml`.

use std::sync::LazyLock;

use toml_edit::{DocumentMut, Item, Value};

use super::choices;
use super::limits::Limit;
use super::outages::{self, TextForm};

/// The type of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A whole number.
    Integer,
    /// A number; whole numbers are taken too.
    Float,
    /// `true` or `false`.
    Boolean,
    /// A string.
    Text,
}

impl ValueKind {
    /// The kind of `value`, if a scenario has such values.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(_) => Some(Self::Integer),
            Value::Float(_) => Some(Self::Float),
            Value::Boolean(_) => Some(Self::Boolean),
            Value::String(_) => Some(Self::Text),
            _ => None,
        }
    }

    /// The kind as an error asks for it, and as an error says that it was given in place of another.
    pub(super) const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Integer => ["a whole number"; 2],
            Self::Float => ["a number", "a number with a decimal point"],
            Self::Boolean => ["true or false"; 2],
            Self::Text => ["a string in quotes", "text"],
        }
    }
}

/// One key of the scenario.
#[derive(Debug)]
pub struct ScenarioKey {
    /// Section and name, as in `swarm.agents`.
    pub path: &'static str,
    /// Name of the flag, without the dashes.
    pub flag: &'static str,
    /// The comment above it.
    pub comment: &'static str,
    /// Type of its value.
    pub kind: ValueKind,
    /// Words it chooses between, if it does.
    pub choices: Option<&'static [&'static str]>,
    /// The form of its text, if it has one.
    pub(super) form: Option<TextForm>,
    /// Its range, if it is a number.
    pub(super) limit: Option<Limit>,
    /// Its default as written in the file.
    pub default: &'static str,
    /// Whether its value is the path of a file; a relative one is taken from the scenario's folder.
    pub is_file: bool,
    /// Whether it may be `"auto"`.
    pub is_optional: bool,
    /// The command that acts on it, or `both`.
    pub(super) commands: &'static str,
    /// Conditions under which it has an effect, all of them.
    conditions: &'static [&'static str],
}

impl ScenarioKey {
    /// The key's section, if it is in one.
    pub fn section(&self) -> Option<&'static str> {
        self.path.split_once('.').map(|(section, _)| section)
    }

    /// The key's name inside its section.
    pub fn name(&self) -> &'static str {
        self.path.split_once('.').map_or(self.path, |(_, name)| name)
    }

    /// Whether one value of it may have commas.
    pub fn has_commas(&self) -> bool {
        self.form.is_some() || self.path == "swarm.boards"
    }

    /// Whether anything looks at the key in `scenario`.
    pub(super) fn has_effect(&self, scenario: &DocumentMut) -> bool {
        let holds = |term: &str| {
            let mut words = term.split(' ');
            let (Some(path), Some(operator), Some(wanted)) = (words.next(), words.next(), words.next())
            else {
                return false;
            };
            let found = at(scenario, path).and_then(Item::as_value).map(plain).unwrap_or_default();
            match operator {
                ">" => found.parse::<f64>().ok() > wanted.parse().ok(),
                _ => wanted.split('|').any(|word| word.trim_matches('"') == found) == (operator == "="),
            }
        };
        let is_met = |condition: &&str| condition.split(" or ").any(|terms| terms.split(" and ").all(holds));
        self.conditions.iter().all(is_met)
    }
}

/// A value without quotes, and without the comments and spaces around it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string().trim().to_owned(), str::to_owned)
}

/// The item at `path`.
pub(super) fn at<'a>(document: &'a DocumentMut, path: &str) -> Option<&'a Item> {
    match path.split_once('.') {
        Some((section, name)) => document.get(section)?.get(name),
        None => document.get(path),
    }
}

/// Every key, in the order of the file.
pub fn keys() -> &'static [ScenarioKey] {
    // `build.rs` makes it of `default.toml`.
    static KEYS: &[ScenarioKey] = include!(concat!(env!("OUT_DIR"), "/keys.rs"));
    KEYS
}

/// The key at `path`.
pub(super) fn key(path: &str) -> Option<&'static ScenarioKey> {
    keys().iter().find(|key| key.path == path)
}

/// The commented default scenario, without the declarations of its keys.
pub(super) fn text() -> String {
    let lines = include_str!("default.toml").split_inclusive('\n');
    lines.filter(|line| !line.starts_with("#:")).collect()
}

/// The default scenario as a document that keeps its comments.
pub(super) fn document() -> &'static DocumentMut {
    static DOCUMENT: LazyLock<DocumentMut> =
        LazyLock::new(|| text().parse().expect("default.toml is valid TOML: a test holds it"));
    &DOCUMENT
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_key_has_a_flag_of_its_own_and_a_comment_that_names_every_choice() {
        let mut seen = BTreeSet::new();
        for key in keys() {
            assert!(seen.insert(key.flag), "--{} stands for two keys", key.flag);
            assert!(key.comment.ends_with('.'), "{} has no comment above it: {:?}", key.path, key.comment);
            for word in key.choices.unwrap_or_default() {
                assert!(key.comment.contains(word), "the comment of {} does not name {word}", key.path);
            }
        }
        assert!(["policy-evaluation-states", "problem", "eta-x"].iter().all(|flag| seen.contains(flag)));
    }

    #[test]
    fn conditions_name_keys_and_their_words() {
        for key in keys() {
            assert!(["run", "train", "both"].contains(&key.commands), "{}: {}", key.path, key.commands);
            for term in
                key.conditions.iter().flat_map(|one| one.split(" or ")).flat_map(|all| all.split(" and "))
            {
                let [path, operator, wanted] = term.split(' ').collect::<Vec<_>>()[..] else {
                    panic!("{term}")
                };
                let other = super::key(path).unwrap_or_else(|| panic!("{}: {term}", key.path));
                assert!(["=", "!=", ">"].contains(&operator), "{}: {term}", key.path);
                let words = other.choices.unwrap_or_default();
                assert!(
                    words.is_empty() || wanted.split('|').all(|word| words.contains(&word)),
                    "{}: {term}",
                    key.path
                );
            }
        }
    }

    #[test]
    fn keys_have_an_effect_under_their_conditions() {
        let has_effect = |path, changes: &[(&str, &str)]| {
            let mut scenario = document().clone();
            for (path, value) in changes {
                let (section, name) = path.split_once('.').unwrap();
                scenario[section][name] = value.parse::<Item>().unwrap();
            }
            super::key(path).unwrap().has_effect(&scenario)
        };
        for path in [
            "swarm.agents",
            "algorithm.self_weight",
            "frames.width",
            "network.phase_rounds",
            "training.epochs",
        ] {
            assert!(has_effect(path, &[]), "{path}");
        }
        for path in [
            "algorithm.weights",
            "hyper_tuning.classes",
            "motion.area_m",
            "faults.burst_rounds",
            "radio.spreading",
        ] {
            assert!(!has_effect(path, &[]), "{path}");
        }
        let fab = ("algorithm.kind", "\"fab\"");
        assert!(has_effect("algorithm.weights", &[fab]) && !has_effect("algorithm.self_weight", &[fab]));
        assert!(has_effect("algorithm.self_weight", &[fab, ("algorithm.weights", "\"lazy\"")]));
        assert!(has_effect("faults.burst_rounds", &[("faults.burst_loss", "0.1")]));
        assert!(has_effect("intruder.memory_frames", &[("intruder.ambush_frames", "1")]));
        assert!(!has_effect("algorithm.descend_rounds", &[("algorithm.gather_rounds", "0")]));
        assert!(!has_effect("policy_evaluation.states", &[("policy_evaluation.file", "\"p.npz\"")]));
    }
}
