//! Constants of a run.

use fabswarm_shared::fab::Order;
use fabswarm_shared::problem::PenaltyForm;

use super::{Ledger, PushSumRule};
use crate::device::{Block, Packed};

/// The variable that is learned at the upper level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UpperLevel {
    /// A weight σ(ψ_j) for every training sample; τ/2 ‖w‖² regularises the lower level.
    Cleaning {
        /// τ.
        regularisation: f64,
    },
    /// The τ of τ ‖w‖², shared by all agents and kept at zero or more.
    Tuning {
        /// τ before training.
        start: f64,
    },
    /// Nothing: the single-level baseline on the training samples.
    SingleLevel {
        /// The τ of τ/2 ‖w‖².
        regularisation: f64,
    },
}

/// Constants of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct FabConfig {
    /// Agents of the swarm.
    pub agents: usize,
    /// The agents that are computed here; the others are on other hosts.
    pub own: Block,
    /// The task of the upper level.
    pub task: UpperLevel,
    /// λ.
    pub penalty: f64,
    /// Divide all gradients by λ.
    pub normalise: bool,
    /// η_x, η_y, η_z.
    pub steps: [f64; 3],
    /// β; 0 is without momentum.
    pub momentum: f64,
    /// Without push-sum weights, whether agents step before or after they average.
    pub order: Order,
    /// Which difference of lower functions stands for the lower level.
    pub form: PenaltyForm,
    /// Samples of the upper level per agent and round; 0 at a single level.
    pub validation_batch: usize,
    /// Samples of the lower level per agent and round.
    pub training_batch: usize,
    /// The seed of dropout masks.
    pub seed: u64,
    /// Push by broadcast ledger, which survives lost frames, instead of push weights.
    pub ledger: Option<Ledger>,
    /// At a single level and without a ledger: push-sum weights instead of pull weights.
    pub push_sum: Option<PushSumRule>,
}

impl FabConfig {
    /// A run with these batches of samples per agent and round, by push weights and without momentum; steps are still zero.
    pub fn new(agents: usize, task: UpperLevel, validation_batch: usize, training_batch: usize) -> Self {
        FabConfig {
            agents,
            own: Block::whole(agents),
            task,
            penalty: 1.0,
            normalise: false,
            steps: [0.0; 3],
            momentum: 0.0,
            order: Order::CombineFirst,
            form: PenaltyForm::OneSided,
            validation_batch,
            training_batch,
            seed: 0,
            ledger: None,
            push_sum: None,
        }
    }

    /// The factor of every gradient.
    pub(super) fn scale(&self) -> f64 {
        if self.normalise && self.is_bilevel() { 1.0 / self.penalty } else { 1.0 }
    }

    /// The weight of the lower level in the gradient of y and z.
    pub(super) fn lower_weight(&self) -> f64 {
        if self.is_bilevel() { self.scale() * self.penalty } else { 1.0 }
    }

    /// Whether there is an upper level.
    pub fn is_bilevel(&self) -> bool {
        !matches!(self.task, UpperLevel::SingleLevel { .. })
    }

    /// Whether agents step before they send, and average what they receive.
    pub(super) fn adapts_first(&self) -> bool {
        self.push_sum.map_or(self.order == Order::AdaptFirst, PushSumRule::descends_first)
    }

    /// Whether a round's pull and push are one pass: all agents are here, and mix by pull and push weights.
    pub(crate) fn mixes_at_once(&self) -> bool {
        self.ledger.is_none() && self.push_sum.is_none() && self.own == Block::whole(self.agents)
    }

    /// Whether z minimises `g − f/λ`.
    pub(crate) fn is_symmetric(&self) -> bool {
        self.is_bilevel() && self.form == PenaltyForm::Symmetric
    }

    /// The weight of the gap between y and z in the gradient of x: half of it where it spans both sides.
    pub(super) fn gap_weight(&self) -> f64 {
        if self.is_symmetric() { 0.5 } else { 1.0 }
    }

    /// Samples that z takes per agent and round.
    pub(crate) fn z_batch(&self) -> usize {
        self.training_batch + if self.is_symmetric() { self.validation_batch } else { 0 }
    }

    /// How y (and z) of all agents are packed, `stride` words each.
    pub fn packed(&self, stride: usize) -> Packed {
        let groups = if self.is_bilevel() { 2 } else { 1 };
        Packed { groups, agents: self.agents, stride, own: self.own }
    }
}
