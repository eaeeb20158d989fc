//! The keys of a scenario, read from `default.toml`.

use std::sync::LazyLock;

use toml_edit::{DocumentMut, Item, Value};

use super::choices::{self, ProblemKind};

/// The commented default scenario.
pub(super) const DEFAULT: &str = include_str!("default.toml");

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

    /// The name of this kind in errors, where another kind is needed.
    pub(super) const fn given(self) -> &'static str {
        match self {
            Self::Integer => "a whole number",
            Self::Float => "a number with a decimal point",
            Self::Boolean => "true or false",
            Self::Text => "text",
        }
    }

    /// The kind, as an error message asks for it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Integer => "a whole number",
            Self::Float => "a number",
            Self::Boolean => "true or false",
            Self::Text => "a string in quotes",
        }
    }
}

/// The keys that name files; a relative path is taken from the scenario's folder.
pub(crate) const FILES: [&str; 5] = [
    "network.graphs",
    "policy_evaluation.file",
    "hyper_tuning.file",
    "hyper_cleaning.file",
    "sensor_trust.file",
];

/// One key of the scenario.
#[derive(Clone, Debug)]
pub struct ScenarioKey {
    /// Section and name, as in `swarm.agents`.
    pub path: String,
    /// Name of the flag, without the dashes.
    pub flag: String,
    /// The comment above it.
    pub comment: String,
    /// Type of its value.
    pub kind: ValueKind,
    /// Words it chooses between, if it does.
    pub choices: Option<&'static [&'static str]>,
    /// Its default as written in the file.
    pub default: String,
}

impl ScenarioKey {
    fn new(section: Option<&str>, name: &toml_edit::Key, value: &Value) -> Self {
        let path = match section {
            Some(section) => format!("{section}.{}", name.get()),
            None => name.get().to_owned(),
        };
        let comment = name.leaf_decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        Self {
            flag: flag_of(section, name.get()),
            comment: last_paragraph(comment),
            kind: ValueKind::of(value).expect("the template holds numbers, booleans and strings only"),
            choices: choices::words_of(&path),
            default: value.to_string().trim().to_owned(),
            path,
        }
    }

    /// The key's section, if it is in one.
    pub fn section(&self) -> Option<&str> {
        self.path.split_once('.').map(|(section, _)| section)
    }

    /// Whether its value is the path of a file.
    pub fn is_file(&self) -> bool {
        FILES.contains(&self.path.as_str())
    }

    /// The key's name inside its section.
    pub fn name(&self) -> &str {
        self.path.split_once('.').map_or(self.path.as_str(), |(_, name)| name)
    }
}

/// Every key, in the order of the file.
pub fn keys() -> &'static [ScenarioKey] {
    static KEYS: LazyLock<Vec<ScenarioKey>> = LazyLock::new(|| {
        let mut keys = Vec::new();
        for (name, item) in document().iter() {
            match item {
                Item::Table(table) => {
                    for (inner, item) in table.iter() {
                        if let (Some(value), Some(key)) = (item.as_value(), table.key(inner)) {
                            keys.push(ScenarioKey::new(Some(name), key, value));
                        }
                    }
                }
                Item::Value(value) => {
                    if let Some(key) = document().key(name) {
                        keys.push(ScenarioKey::new(None, key, value));
                    }
                }
                Item::None | Item::ArrayOfTables(_) => {}
            }
        }
        keys
    });
    &KEYS
}

/// The key at `path`.
pub(super) fn key(path: &str) -> Option<&'static ScenarioKey> {
    keys().iter().find(|key| key.path == path)
}

/// The default scenario as a document that keeps its comments.
pub(super) fn document() -> &'static DocumentMut {
    static DOCUMENT: LazyLock<DocumentMut> =
        LazyLock::new(|| DEFAULT.parse().expect("default.toml is valid TOML: a test holds it"));
    &DOCUMENT
}

/// Problem sections lend their name to their flags, since several have `features`; `kind` goes by its section's name.
fn flag_of(section: Option<&str>, name: &str) -> String {
    let flag = match section {
        Some(section) if name == "kind" => section.to_owned(),
        Some(section) if ProblemKind::WORDS.contains(&section.replace('_', "-").as_str()) => {
            format!("{section}-{name}")
        }
        _ => name.to_owned(),
    };
    flag.replace('_', "-")
}

/// The comment lines directly above a key, without a preceding file header.
fn last_paragraph(comment: &str) -> String {
    let paragraph = comment.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let lines: Vec<&str> = paragraph.lines().map(|line| line.trim_start_matches('#').trim()).collect();
    lines.join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_key_has_a_comment() {
        for key in keys() {
            assert!(key.comment.ends_with('.'), "{} has no comment above it: {:?}", key.path, key.comment);
        }
        assert!(keys().len() > 40);
    }

    #[test]
    fn flags_are_unique() {
        let mut seen = BTreeSet::new();
        for key in keys() {
            assert!(seen.insert(&key.flag), "--{} stands for two keys", key.flag);
        }
        assert!(seen.contains(&"policy-evaluation-states".to_owned()));
        assert!(seen.contains(&"problem".to_owned()) && seen.contains(&"eta-x".to_owned()));
    }

    #[test]
    fn comments_name_every_choice() {
        for key in keys() {
            for word in key.choices.unwrap_or_default() {
                assert!(key.comment.contains(word), "the comment of {} does not name {word}", key.path);
            }
        }
    }
}
