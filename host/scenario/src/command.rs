//! Which command acts on which keys.

use super::template::{ScenarioKey, keys};
use super::{AlgorithmKind, ProblemKind};

/// A command that reads a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioCommand {
    /// `fabswarm run`: small agents, one by one.
    Run,
    /// `fabswarm train`: large agents in one batch.
    Train,
}

impl ScenarioCommand {
    /// Every command.
    pub const ALL: [Self; 2] = [Self::Run, Self::Train];

    /// The command's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Train => "train",
        }
    }

    /// Whether the command acts on `key`.
    pub fn takes(self, key: &ScenarioKey) -> bool {
        key.commands == "both" || key.commands == self.name()
    }

    /// The words of `key` that the command takes, if it chooses between words.
    pub fn choices(self, key: &ScenarioKey) -> Option<&'static [&'static str]> {
        match self {
            Self::Train if key.path == "algorithm.kind" => Some(AlgorithmKind::FAB_WORDS),
            _ => key.choices,
        }
    }

    /// The other command, if the key says what it is about: its problem, or its training data and model.
    pub(super) fn other_of(self, path: &'static str) -> Option<(&'static str, Self)> {
        let section = path.split_once('.').map_or("", |(section, _)| section);
        let is_problem = section == "problem" || ProblemKind::WORDS.contains(&&*section.replace('_', "-"));
        match self {
            Self::Run if section == "training" => Some((path, Self::Train)),
            Self::Train if is_problem => Some((path, Self::Run)),
            _ => None,
        }
    }

    /// The keys the command acts on, in the order of the file.
    pub fn keys(self) -> impl Iterator<Item = &'static ScenarioKey> {
        keys().iter().filter(move |key| self.takes(key))
    }

    /// The changes of the command to the defaults, as a file.
    pub(super) const fn defaults(self) -> Option<&'static str> {
        match self {
            Self::Run => None,
            Self::Train => Some(include_str!("layers/commands/train.toml")),
        }
    }
}
