//! FAB as `fabswarm run` has it: agents with a ledger that exchange frames in the exact arithmetic of boards (f32 decisions,
//! integer trackers), or the published algorithm, with the order and the penalty that the setting names.

use fabswarm_sim::method::Network;
use fabswarm_sim::scenario::{AlgorithmKind, OrderKind, PenaltyKind};
use fabswarm_sim::swarm::{Metrics, Swarm};
use fabswarm_sim::trial::{self, BuildError};

use super::{ErrorMeasures, Method, MethodStart};

pub(super) struct SimulatedFab {
    swarm: Box<dyn Swarm>,
    /// Counts what travels where the swarm is computed on arrays and has no air.
    network: Network,
    words_per_frame: usize,
    has_diverged: bool,
}

impl SimulatedFab {
    pub(super) fn new(
        start: &MethodStart<'_>,
        kind: AlgorithmKind,
        momentum: f64,
    ) -> Result<Self, BuildError> {
        let MethodStart { setting, steps, seed, .. } = start;
        let mut scenario = setting.scenario(*seed);
        let algorithm = &mut scenario.algorithm;
        algorithm.kind = kind;
        (algorithm.eta_x, algorithm.eta_y) = (setting.lambda * steps.upper, steps.lower);
        (algorithm.eta_z, algorithm.momentum) = (steps.twin.unwrap_or(steps.lower), momentum);
        // Each order has the self-weight that suits it.
        (algorithm.order, algorithm.self_weight) = if setting.adapt_first {
            (OrderKind::AdaptFirst, Some(0.95))
        } else {
            (OrderKind::CombineFirst, Some(0.98))
        };
        algorithm.penalty = if setting.symmetric { PenaltyKind::Symmetric } else { PenaltyKind::OneSided };
        // Sealing changes no number, only the time it takes.
        scenario.frames.sealed = false;
        scenario.frames.send_threshold = setting.send_threshold;
        let task = &scenario.policy_evaluation;
        let words_per_frame = 2 * (task.features + 2 * task.states);
        let network = start.network()?;
        Ok(Self { swarm: trial::build(&scenario)?, network, words_per_frame, has_diverged: false })
    }
}

impl Method for SimulatedFab {
    fn iterate(&mut self) {
        self.has_diverged = self.has_diverged || self.swarm.step().is_err();
        let links = self.network.next_round();
        self.network.count(&links, self.words_per_frame);
    }

    fn measure(&self) -> ErrorMeasures {
        if self.has_diverged {
            return ErrorMeasures { error: f64::INFINITY, consensus: f64::INFINITY };
        }
        let Metrics { error, consensus_error, .. } = self.swarm.metrics();
        ErrorMeasures { error, consensus: consensus_error }
    }

    fn rounds(&self) -> u32 {
        self.swarm.round() as u32
    }

    fn floats(&self) -> u64 {
        self.swarm.air().map_or(self.network.floats(), |air| {
            let counters = air.counters();
            self.words_per_frame as u64 * (counters.copies - counters.lost.total())
        })
    }
}
