//! The configuration of an agent.

use super::Links;
use crate::fab::{Order, Phases, Steps};
use crate::problem::{Penalty, PenaltyForm};
use crate::wire::payload::Width;
use core::num::NonZeroU32;
use serde::{Deserialize, Serialize};

/// When a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// All agents are in the same round; a frame of the next one waits.
    LockStep,
    /// Each agent has its own clock and uses the newest data it has.
    FreeRunning,
}

/// The configuration of an agent.
///
/// ```
/// use fabswarm_shared::agent::Config;
/// use fabswarm_shared::wire::payload::Width;
/// use std::num::NonZeroU32;
///
/// let give_up_after = NonZeroU32::new(40);
/// let config = Config { width: Width::Half, late_rounds: 2, give_up_after, ..Config::founder(3, 10) };
/// assert_eq!((config.id, config.founders, config.boot), (3, 10, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Its number in the swarm.
    pub id: u16,
    /// How many agents belong to the first epoch: those with the numbers below this.
    pub founders: u16,
    /// When its rounds end.
    pub mode: Mode,
    /// Step sizes.
    pub steps: Steps<f32>,
    /// Whether it descends before or after it averages decisions: the same for all agents of a swarm.
    pub order: Order,
    /// Rounds in which it pushes and descends: the same for all agents of a swarm in lock-step.
    pub phases: Phases,
    /// Penalty on the lower level.
    pub penalty: Penalty<f32>,
    /// κ, what it keeps of its tracker in a round in which it pushes.
    pub self_weight: f32,
    /// The agents that may collect from it, and those from which it may collect.
    pub links: Links,
    /// How narrow its frames are.
    pub width: Width,
    /// Rounds of silence after which a member that was heard before is given up; `None`: never.
    pub give_up_after: Option<NonZeroU32>,
    /// How many rounds late a frame may come and still count, in lock-step. With 0 a frame is of its own round only, so that
    /// one that was recorded and sent again never counts.
    pub late_rounds: u32,
    /// By how much a word of its decision must have moved since its last data frame for another one to be sent, as a fraction of one
    /// plus the word; 0 sends in every round. What it gives meanwhile is collected from the next frame.
    pub send_threshold: f32,
    /// How often it started, from 1. Later starts without [`Agent::restore`](super::Agent::restore) join as one that lost its memory.
    pub boot: u32,
}

impl Config {
    /// The agent with number `id` in a swarm of `founders`, at its first start and with steps for the paper's problem.
    pub const fn founder(id: u16, founders: u16) -> Self {
        Self {
            id,
            founders,
            mode: Mode::LockStep,
            steps: Steps { x: 1.8, y: 0.18, z: 0.18, momentum: 0.7 },
            order: Order::AdaptFirst,
            phases: Phases::TOGETHER,
            penalty: Penalty { lambda: 60.0, normalise: true, form: PenaltyForm::Symmetric },
            self_weight: 0.95,
            links: Links::Everybody,
            width: Width::Full,
            give_up_after: None,
            late_rounds: 0,
            send_threshold: 0.0,
            boot: 1,
        }
    }

    pub(super) fn is_lock_step(&self) -> bool {
        self.mode == Mode::LockStep
    }
}
