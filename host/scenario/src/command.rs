//! Which command acts on which keys.

use super::ProblemKind;
use super::template::{ScenarioKey, keys};

/// A command that reads a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioCommand {
    /// `fabswarm run`: small agents, one by one.
    Run,
    /// `fabswarm train`: large agents in one batch.
    Train,
}

/// Sections that large agents share with small ones, whole.
const SHARED_SECTIONS: [&str; 4] = ["network", "motion", "faults", "intruder"];
/// Keys of other sections that large agents share with small ones.
const SHARED_KEYS: [&str; 16] = [
    "version",
    "seed",
    "problem_seed",
    "network_seed",
    "swarm.agents",
    "algorithm.kind",
    "algorithm.order",
    "algorithm.penalty",
    "algorithm.lambda",
    "algorithm.eta_x",
    "algorithm.eta_y",
    "algorithm.eta_z",
    "algorithm.momentum",
    "algorithm.normalise_by_lambda",
    "algorithm.self_weight",
    "frames.late_rounds",
];

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

    /// Whether the command acts on the key at `path`.
    pub fn takes(self, path: &str) -> bool {
        let section = path.split_once('.').map_or("", |(section, _)| section);
        match self {
            Self::Run => section != "training",
            Self::Train => {
                section == "training"
                    || path == "output.out"
                    || (SHARED_SECTIONS.contains(&section) && path != "intruder.forged_fragments")
                    || SHARED_KEYS.contains(&path)
            }
        }
    }

    /// The other command, if the key says what it is about: its problem, or its training data and model.
    pub(super) fn other_of(self, path: &'static str) -> Option<(&'static str, Self)> {
        let section = path.split_once('.').map_or("", |(section, _)| section);
        let is_problem = section == "problem" || ProblemKind::WORDS.contains(&&*section.replace('_', "-"));
        let other = match self {
            Self::Run => Self::Train,
            Self::Train => Self::Run,
        };
        let is_others = match self {
            Self::Run => section == "training",
            Self::Train => is_problem,
        };
        is_others.then_some((path, other))
    }

    /// The keys the command acts on, in the order of the file.
    pub fn keys(self) -> impl Iterator<Item = &'static ScenarioKey> {
        keys().iter().filter(move |key| self.takes(&key.path))
    }

    /// The changes of the command to the defaults, as a file.
    pub(super) const fn defaults(self) -> Option<&'static str> {
        match self {
            Self::Run => None,
            Self::Train => Some(include_str!("layers/commands/train.toml")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_command_and_every_shared_key_exists() {
        for key in keys() {
            assert!(ScenarioCommand::ALL.iter().any(|command| command.takes(&key.path)), "{}", key.path);
        }
        for path in SHARED_KEYS {
            assert!(keys().iter().any(|key| key.path == path), "there is no key {path}");
        }
    }
}
