//! Keys and words that had other names before. They are refused, and the message gives the new name.

use super::template::flag_of_path;

/// Old and new keys.
const KEYS: [(&str, &str); 3] = [
    ("faults.silent", "faults.radio_off"),
    ("network.trace", "network.graphs"),
    ("training.rho", "training.dirichlet_alpha"),
];

/// Old and new words of a key.
const WORDS: [(&str, &str, &str); 6] = [
    ("training.method", "noisy", "single-level-noisy"),
    ("training.method", "merged", "single-level-all"),
    ("training.method", "validation", "single-level-clean"),
    ("training.method", "push-pull-noisy", "single-level-noisy"),
    ("training.method", "push-pull-all", "single-level-all"),
    ("training.method", "push-pull-clean", "single-level-clean"),
];

/// The key that was called `path`.
pub(super) fn key(path: &str) -> Option<&'static str> {
    KEYS.iter().find(|(old, _)| *old == path).map(|(_, new)| *new)
}

/// The word of the key at `path` that was called `word`.
pub(super) fn word(path: &str, word: &str) -> Option<&'static str> {
    WORDS.iter().find(|(key, old, _)| *key == path && *old == word).map(|(_, _, new)| *new)
}

/// The flag, without its dashes, that was called `flag`.
#[must_use]
pub fn renamed_flag(flag: &str) -> Option<String> {
    KEYS.iter().find(|(old, _)| flag_of_path(old) == flag).map(|(_, new)| flag_of_path(new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template;

    #[test]
    fn new_names_exist_and_old_ones_do_not() {
        for (old, new) in KEYS {
            assert!(template::key(old).is_none() && template::key(new).is_some(), "{old} {new}");
        }
        for (path, old, new) in WORDS {
            let words = template::key(path).unwrap().choices.unwrap();
            assert!(!words.contains(&old) && words.contains(&new), "{path} {old} {new}");
        }
        assert_eq!(renamed_flag("silent").as_deref(), Some("radio-off"));
        assert_eq!(renamed_flag("radio-off"), None);
    }
}
