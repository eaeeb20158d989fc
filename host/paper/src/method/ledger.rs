//! FAB through the broadcast ledger, as `fabswarm run` has it: agents that exchange frames over the simulated air, in the exact
//! arithmetic of boards (f32 decisions, integer trackers), without and with momentum.

use fabswarm_sim::scenario::{OrderKind, PenaltyKind};
use fabswarm_sim::swarm::{Metrics, Swarm};
use fabswarm_sim::trial::{self, BuildError};

use super::{Measurement, Method, MethodStart};

/// κ that suits this order.
const SELF_WEIGHT: f64 = 0.98;

/// A swarm of agents with ledgers.
pub(super) struct LedgerFab {
    swarm: Box<dyn Swarm>,
    words_per_frame: u64,
    has_diverged: bool,
}

impl LedgerFab {
    pub(super) fn new(start: &MethodStart<'_>, momentum: f64) -> Result<Self, BuildError> {
        let MethodStart { setting, steps, seed, .. } = start;
        let mut scenario = setting.scenario(*seed);
        let algorithm = &mut scenario.algorithm;
        (algorithm.eta_x, algorithm.eta_y) = (setting.lambda * steps.upper, steps.lower);
        (algorithm.eta_z, algorithm.momentum) = (steps.twin.unwrap_or(steps.lower), momentum);
        // Order and penalty are the paper's, so that the ledger is all that differs from plain FAB.
        (algorithm.order, algorithm.penalty) = (OrderKind::CombineFirst, PenaltyKind::OneSided);
        algorithm.self_weight = SELF_WEIGHT;
        // Sealing changes no number, only the time it takes.
        scenario.frames.sealed = false;
        let task = &scenario.policy_evaluation;
        let words_per_frame = 2 * (task.features + 2 * task.states) as u64;
        Ok(Self { swarm: trial::build(&scenario)?, words_per_frame, has_diverged: false })
    }
}

impl Method for LedgerFab {
    fn iterate(&mut self) {
        self.has_diverged = self.has_diverged || self.swarm.step().is_err();
    }

    fn measure(&self) -> Measurement {
        if self.has_diverged {
            return Measurement { error: f64::INFINITY, consensus: f64::INFINITY, stationarity: None };
        }
        let Metrics { error, consensus_error, .. } = self.swarm.metrics();
        Measurement { error, consensus: consensus_error, stationarity: None }
    }

    fn rounds(&self) -> u32 {
        self.swarm.round() as u32
    }

    fn floats(&self) -> u64 {
        let counters = self.swarm.air().map(|air| air.counters());
        counters.map_or(0, |counters| self.words_per_frame * (counters.copies - counters.lost.total()))
    }
}
