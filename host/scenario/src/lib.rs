//! The scenario: one versioned TOML file that describes a run.
//!
//! `default.toml` holds every key with its default and is the only list of them: flags, help texts and checks
//! are made from it. A run's scenario is built in layers, each over the one before it:
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
mod effects;
mod error;
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
pub use layers::{Flag, LOST_WITH_FAB, ResolvedScenario, resolve, resolve_for, resolve_text_for};
pub use outages::{Crash, Crashes, Outage, OutageList};
pub use suggest::{FlagSuggestion, nearest, suggest_flag};
pub use template::{ScenarioKey, ValueKind, keys};

use serde::Deserialize;
use std::num::NonZeroU32;

/// A scenario with every value in its type and within its limits.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub version: u32,
    pub seed: u64,
    pub problem_seed: i64,
    pub network_seed: i64,
    pub swarm: SwarmSection,
    pub problem: ProblemSection,
    pub policy_evaluation: PolicyEvaluationSection,
    pub hyper_tuning: HyperTuningSection,
    pub hyper_cleaning: HyperCleaningSection,
    pub sensor_trust: SensorTrustSection,
    pub algorithm: AlgorithmSection,
    pub frames: FramesSection,
    pub network: NetworkSection,
    pub motion: MotionSection,
    pub radio: RadioSection,
    pub faults: FaultsSection,
    pub intruder: IntruderSection,
    pub stop: StopSection,
    pub output: OutputSection,
    pub training: TrainingSection,
}

/// The value of `swarm.boards` with all agents in this process.
pub const IN_PROCESS: &str = "in-process";

/// How many agents, for how long, in which arithmetic.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwarmSection {
    pub agents: usize,
    pub rounds: u64,
    pub precision: PrecisionKind,
    pub boards: String,
    pub lost_boards: LostBoards,
    pub mode: ModeKind,
    pub pace: PaceKind,
    pub clock_spread: f64,
}

/// Which of the problem sections counts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProblemSection {
    pub kind: ProblemKind,
}

/// Sizes and constants of policy evaluation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyEvaluationSection {
    pub file: String,
    pub states: usize,
    pub features: usize,
    pub discount: f64,
    pub regularisation: f64,
    pub upper_weight: f64,
    pub lower_weight: f64,
    pub reward_noise: f64,
}

/// Sizes and constants of hyper-parameter tuning.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HyperTuningSection {
    pub file: String,
    pub features: usize,
    pub classes: usize,
    pub train_samples: usize,
    pub validation_samples: usize,
    pub corruption: f64,
    pub initial_tau: f64,
}

/// Sizes and constants of data hyper-cleaning.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HyperCleaningSection {
    pub file: String,
    pub features: usize,
    pub classes: usize,
    pub train_samples: usize,
    pub validation_samples: usize,
    pub corruption: f64,
    pub regularisation: f64,
    pub trust_labels: bool,
}

/// Sizes and constants of the sensor-trust task.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SensorTrustSection {
    pub file: String,
    pub sensors: usize,
    pub readings_per_sensor: usize,
    pub calibrated_readings: usize,
    pub basis: usize,
    pub faulty_share: f64,
    pub fault_bias: f64,
    pub noise: f64,
    pub regularisation: f64,
}

/// The algorithm and its steps.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlgorithmSection {
    pub kind: AlgorithmKind,
    pub order: OrderKind,
    pub penalty: PenaltyKind,
    pub lambda: f64,
    pub eta_x: f64,
    pub eta_y: f64,
    pub eta_z: f64,
    pub momentum: f64,
    pub normalise_by_lambda: bool,
    pub self_weight: f64,
    pub gather_rounds: i64,
    pub descend_rounds: u32,
    pub give_up_after: i64,
    pub weights: WeightsKind,
    pub inner_rounds: u32,
}

impl AlgorithmSection {
    /// κ over links that come and go. `docs/steps.md` has the rounds to 1 % with others.
    pub const USUAL_SELF_WEIGHT: f64 = 0.95;

    /// κ, where it does not follow from links.
    pub const fn usual_self_weight(&self) -> f64 {
        if self.self_weight < 0.0 { Self::USUAL_SELF_WEIGHT } else { self.self_weight }
    }
}

/// Frames that agents exchange.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FramesSection {
    pub width: WidthKind,
    pub sealed: bool,
    pub late_rounds: u32,
    pub send_threshold: f64,
}

/// The links between agents.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSection {
    pub topology: TopologyKind,
    pub edge_probability: f64,
    pub phase_rounds: u32,
    pub connectivity_window: u32,
    pub graphs: String,
    pub graphs_repeat: bool,
    pub blocks: usize,
    pub exchange_every: u32,
}

/// How agents fly, and how far their radios reach.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MotionSection {
    pub pattern: FlightPattern,
    pub area_m: f64,
    pub height_m: f64,
    pub speed_m_s: f64,
    pub spacing_m: f64,
    pub round_ms: f64,
    pub power_dbm: f64,
    pub power_spread_db: f64,
    pub reference_loss_db: f64,
    pub path_loss_exponent: f64,
    pub shadowing_db: f64,
    pub shadowing_s: f64,
    pub sensitivity_dbm: f64,
    pub steepness_db: f64,
}

/// The radio of boards that keep their own time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RadioSection {
    pub kind: RadioFamily,
    pub clock_ppm: u32,
    pub hops: u8,
    pub reach_m: f64,
    pub compute_ms: f64,
    pub period_ms: f64,
    pub spreading: u8,
    pub bandwidth_khz: u16,
    pub duty_percent: f64,
}

/// Faults of the air.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultsSection {
    pub iid_loss: f64,
    pub burst_loss: f64,
    pub burst_rounds: f64,
    pub delay_rounds: u32,
    pub duplication: f64,
    pub reordering: f64,
    pub bit_corruption: f64,
    pub radio_off: OutageList,
    pub frozen: OutageList,
    pub crashes: Crashes,
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
        let shares = [self.iid_loss, self.burst_loss, self.duplication, self.reordering, self.bit_corruption];
        shares == [0.0; 5]
            && self.delay_rounds == 0
            && self.radio_off.0.is_empty()
            && self.frozen.0.is_empty()
            && self.crashes.0.is_empty()
    }
}

/// An intruder on the air.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntruderSection {
    pub replay: f64,
    pub wrong_key: f64,
    pub frames_per_round: u32,
    pub memory_frames: usize,
    pub ambush_frames: u32,
    pub relay: f64,
    pub forged_fragments: u32,
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

/// When the run stops early.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopSection {
    pub error_below: f64,
    pub extra_rounds: u64,
}

/// Output of the run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputSection {
    pub out: String,
    pub metrics_every: u64,
    pub log_frames_mb: f64,
}

/// Training of large agents.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingSection {
    pub data: String,
    pub model: String,
    pub model_width: usize,
    pub sequence: usize,
    pub dropout: f64,
    pub method: TrainingMethod,
    pub rule: TrainingRule,
    pub dirichlet_alpha: f64,
    pub validation_one_in: usize,
    pub corruption_rate: f64,
    pub trust_labels: bool,
    pub epochs: u32,
    pub batch: usize,
    pub regularisation: f64,
    pub train_samples: usize,
    pub test_samples: usize,
    pub evaluate_every: u32,
    pub checkpoint_every: u32,
}

impl Scenario {
    /// The seed of the problem's data.
    pub fn problem_seed(&self) -> u64 {
        u64::try_from(self.problem_seed).unwrap_or(self.seed)
    }

    /// The seed of links, faults, flight and clocks.
    pub fn network_seed(&self) -> u64 {
        u64::try_from(self.network_seed).unwrap_or(self.seed)
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
        self.algorithm.give_up_after = self.give_up_after().map_or(0, |rounds| rounds.get().into());
        self.swarm.boards = IN_PROCESS.to_owned();
        self
    }

    /// After how many rounds of silence a member is given up; `None`: never.
    pub fn give_up_after(&self) -> Option<NonZeroU32> {
        let can_die = self.swarm.pace == PaceKind::Slots || !self.faults.crashes.0.is_empty();
        let rounds = match self.algorithm.give_up_after {
            0.. => self.algorithm.give_up_after,
            _ if can_die => (32 * self.swarm.agents as i64).max(500),
            _ => 0,
        };
        NonZeroU32::new(u32::try_from(rounds).unwrap_or(u32::MAX))
    }

    /// The outages that begin in round `rounds` or later, so never in a run of that length. Each is written as
    /// `key agent@round`, in the order of the file.
    pub fn outages_from(&self, rounds: u64) -> Vec<String> {
        let radio_off =
            self.faults.radio_off.0.iter().map(|silence| ("faults.radio_off", silence.agent, silence.from));
        let frozen = self.faults.frozen.0.iter().map(|freeze| ("faults.frozen", freeze.agent, freeze.from));
        let crashes = self.faults.crashes.0.iter().map(|crash| ("faults.crashes", crash.agent, crash.round));
        radio_off
            .chain(frozen)
            .chain(crashes)
            .filter(|&(_, _, round)| u64::from(round) >= rounds)
            .map(|(key, agent, round)| format!("{key} {agent}@{round}"))
            .collect()
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
    fn the_default_scenario_is_the_one_of_the_documentation() {
        let scenario = Scenario::default();
        assert_eq!(scenario.swarm.agents, 10);
        assert_eq!(scenario.problem.kind, ProblemKind::PolicyEvaluation);
        assert_eq!(scenario.network.topology, TopologyKind::Paper);
        assert_eq!(scenario.network.edge_probability, 0.3);
        assert_eq!((scenario.algorithm.eta_x, scenario.algorithm.eta_y), (1.8, 0.18));
        assert_eq!(scenario.algorithm.momentum, 0.7);
        assert_eq!((scenario.stop.error_below, scenario.stop.extra_rounds), (0.01, 200));
    }

    #[test]
    fn late_frames_count_for_as_long_as_the_air_delays_them() {
        let mut scenario = Scenario::default();
        assert_eq!(scenario.late_rounds(), 0);
        (scenario.frames.late_rounds, scenario.faults.delay_rounds) = (2, 5);
        assert_eq!(scenario.late_rounds(), 5);
        scenario.frames.late_rounds = 7;
        assert_eq!(scenario.late_rounds(), 7);
    }

    #[test]
    fn outages_that_a_run_never_reaches_are_listed() {
        let mut scenario = Scenario::default();
        scenario.faults.radio_off = OutageList(vec![Outage { agent: 3, from: 99, rounds: 5 }]);
        scenario.faults.frozen = OutageList(vec![Outage { agent: 4, from: 100, rounds: 5 }]);
        let crash = |round| Crash { agent: 5, round, down_rounds: 1, keeps_memory: true };
        scenario.faults.crashes = Crashes(vec![crash(10), crash(500)]);
        assert_eq!(scenario.outages_from(100), ["faults.frozen 4@100", "faults.crashes 5@500"]);
        assert!(scenario.outages_from(501).is_empty());
    }
}
