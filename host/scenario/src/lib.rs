//! The scenario: one versioned TOML file that describes a run.
//!
//! `default.toml` declares every key: its default, help text, type, range, commands and the condition under which it has an effect.
//! Structs, flags and checks are made from it. A run's scenario is built in layers, each over the one before it:
//!
//! 1. `default.toml`;
//! 2. what the command, the chosen algorithm, the topology and the problem change (`layers/commands/<command>.toml`,
//!    `layers/algorithms/<algorithm>.toml`, `layers/topologies/ring.toml`, `layers/problems/<problem>.toml`):
//!    steps that suit policy evaluation do not suit the others;
//! 3. the user's file;
//! 4. the flags of the command line.
//!
//! `fabswarm run` and `fabswarm train` read the same file; each [`ScenarioCommand`] acts on its part of the keys.
//! [`resolve`] does all of it and refuses what cannot run, naming where the value came from and what to put there.

mod choices;
mod command;
mod error;
mod flag;
mod layers;
mod limits;
mod outages;
mod settings;
mod suggest;
mod template;

pub use choices::{
    AlgorithmKind, FlightPattern, LostBoards, ModeKind, OrderKind, PaceKind, PenaltyKind, PrecisionKind,
    ProblemKind, RadioFamily, TopologyKind, TrainingMethod, TrainingRule, WeightsKind, WidthKind,
};
pub use command::ScenarioCommand;
pub use error::Error;
pub use flag::Flag;
pub use layers::{LOST_WITH_FAB, ResolvedScenario, resolve, resolve_for, resolve_text_for};
pub use outages::{Crash, Crashes, Outage, OutageList};
pub use suggest::{FlagSuggestion, nearest, suggest_flag};
pub use template::{ScenarioKey, ValueKind, keys};

use serde::{Deserialize, Deserializer};
use std::num::NonZeroU32;

// `build.rs` makes it of `default.toml`.
include!(concat!(env!("OUT_DIR"), "/sections.rs"));

/// Reads a value, or the word `auto` for one that follows from other keys.
fn auto<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given<T> {
        Value(T),
        Word(String),
    }
    match Given::deserialize(deserializer)? {
        Given::Value(value) => Ok(Some(value)),
        Given::Word(word) if word == "auto" => Ok(None),
        Given::Word(word) => Err(serde::de::Error::custom(format!("`{word}` is not `auto`"))),
    }
}

/// The value of `swarm.boards` with all agents in this process.
pub const IN_PROCESS: &str = "in-process";

impl AlgorithmSection {
    /// κ over links that come and go. `docs/steps.md` has the rounds to 1 % with others.
    pub const USUAL_SELF_WEIGHT: f64 = 0.95;

    /// κ, where it does not follow from links.
    pub fn usual_self_weight(&self) -> f64 {
        self.self_weight.unwrap_or(Self::USUAL_SELF_WEIGHT)
    }
}

impl FaultsSection {
    /// Whether a frame may be lost, or come too late to count.
    pub fn lose_frames(&self) -> bool {
        [self.iid_loss, self.burst_loss, self.bit_corruption] != [0.0; 3]
            || self.delay_rounds > 0
            || !(self.radio_off.0.is_empty() && self.frozen.0.is_empty() && self.crashes.0.is_empty())
    }

    /// Whether there are no faults.
    pub fn are_none(&self) -> bool {
        !self.lose_frames() && [self.duplication, self.reordering] == [0.0; 2]
    }

    /// The key, agent and first round of every outage, in the order of the file.
    pub fn outages(&self) -> impl Iterator<Item = (&'static str, usize, u32)> {
        let radio_off =
            self.radio_off.0.iter().map(|silence| ("faults.radio_off", silence.agent, silence.from));
        let frozen = self.frozen.0.iter().map(|freeze| ("faults.frozen", freeze.agent, freeze.from));
        let crashes = self.crashes.0.iter().map(|crash| ("faults.crashes", crash.agent, crash.round));
        radio_off.chain(frozen).chain(crashes)
    }
}

impl IntruderSection {
    /// Whether there is no intruder.
    pub fn is_none(&self) -> bool {
        !self.is_on_air() && self.forged_fragments == 0
    }

    /// Whether it sends frames.
    pub fn is_on_air(&self) -> bool {
        [self.replay, self.wrong_key, self.relay] != [0.0; 3] || self.ambush_frames > 0
    }
}

impl Scenario {
    /// The seed of the problem's data.
    pub fn problem_seed(&self) -> u64 {
        self.problem_seed.unwrap_or(self.seed)
    }

    /// The seed of links, faults, flight and clocks.
    pub fn network_seed(&self) -> u64 {
        self.network_seed.unwrap_or(self.seed)
    }

    /// Whether the air has neither faults nor an intruder.
    pub fn has_perfect_air(&self) -> bool {
        self.faults.are_none() && self.intruder.is_none()
    }

    /// How many rounds late a frame may arrive and still count: an air that delays frames by more than
    /// `frames.late_rounds` raises the limit, since agents would otherwise discard what it delivers.
    pub fn late_rounds(&self) -> u32 {
        self.frames.late_rounds.max(self.faults.delay_rounds)
    }

    /// The same swarm with all agents in this process.
    #[must_use]
    pub fn in_process(mut self) -> Self {
        self.algorithm.give_up_after = Some(self.give_up_after().map_or(0, NonZeroU32::get));
        self.swarm.boards = IN_PROCESS.to_owned();
        self
    }

    /// After how many rounds of silence a member is given up; `None`: never.
    pub fn give_up_after(&self) -> Option<NonZeroU32> {
        let can_die = self.swarm.pace == PaceKind::Slots || !self.faults.crashes.0.is_empty();
        let usual = || if can_die { (32 * self.swarm.agents as u32).max(500) } else { 0 };
        NonZeroU32::new(self.algorithm.give_up_after.unwrap_or_else(usual))
    }

    /// The outages that begin in round `rounds` or later, each as `key agent@round`, in the order of the file.
    pub fn outages_from(&self, rounds: u64) -> Vec<String> {
        let late = self.faults.outages().filter(|&(_, _, round)| u64::from(round) >= rounds);
        late.map(|(key, agent, round)| format!("{key} {agent}@{round}")).collect()
    }
}

impl Default for Scenario {
    /// The default scenario, `default.toml`.
    fn default() -> Self {
        resolve(None, &[]).expect("default.toml is a valid scenario: a test holds it").scenario
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_frames_count_for_as_long_as_the_air_delays_them() {
        let mut scenario = Scenario::default();
        assert_eq!(scenario.late_rounds(), 0);
        (scenario.frames.late_rounds, scenario.faults.delay_rounds) = (2, 5);
        assert_eq!(scenario.late_rounds(), 5);
        scenario.frames.late_rounds = 7;
        assert_eq!(scenario.late_rounds(), 7);
    }
}
