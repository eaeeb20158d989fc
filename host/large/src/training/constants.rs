//! Translates a scenario into the configuration of a swarm of large agents.

use crate::fab::{FabConfig, Ledger, PushSumRule, UpperLevel};
use fabswarm_shared::fab::Order;
use fabswarm_shared::problem::PenaltyForm;
use fabswarm_sim::scenario::{
    OrderKind, PenaltyKind, Scenario, TrainingMethod, TrainingRule, TrainingSection,
};

/// The rule of the scenario, where it has push-sum weights: methods of two levels have none.
pub(super) fn push_sum_rule(scenario: &Scenario) -> Option<PushSumRule> {
    match scenario.training.rule {
        _ if scenario.training.method.is_bilevel() => None,
        TrainingRule::PushPull => None,
        TrainingRule::SubgradientPush => Some(PushSumRule::SubgradientPush),
        TrainingRule::PushSgd => Some(PushSumRule::PushSgd),
        TrainingRule::PushDiging => Some(PushSumRule::PushDiging),
        TrainingRule::PushSaga => Some(PushSumRule::PushSaga),
        TrainingRule::PushAsgd => Some(PushSumRule::PushAsgd { momentum: scenario.algorithm.momentum }),
    }
}

pub(super) fn config(scenario: &Scenario, ledger: Option<Ledger>) -> FabConfig {
    let (algorithm, training) = (&scenario.algorithm, &scenario.training);
    let regularisation = training.regularisation;
    let task = match training.method {
        TrainingMethod::Cleaning => UpperLevel::Cleaning { regularisation },
        TrainingMethod::Tuning => UpperLevel::Tuning { start: regularisation },
        TrainingMethod::SingleLevelNoisy
        | TrainingMethod::SingleLevelAll
        | TrainingMethod::SingleLevelClean => UpperLevel::SingleLevel { regularisation },
    };
    let validation_batch = if training.method.is_bilevel() { training.batch } else { 0 };
    FabConfig {
        penalty: algorithm.lambda,
        normalise: algorithm.normalise_by_lambda,
        steps: [algorithm.eta_x, algorithm.eta_y, algorithm.eta_z],
        momentum: match push_sum_rule(scenario) {
            // Its β is another momentum.
            Some(PushSumRule::PushAsgd { .. }) => 0.0,
            _ => algorithm.momentum,
        },
        order: match algorithm.order {
            OrderKind::AdaptFirst => Order::AdaptFirst,
            OrderKind::CombineFirst => Order::CombineFirst,
        },
        form: match algorithm.penalty {
            PenaltyKind::Symmetric => PenaltyForm::Symmetric,
            PenaltyKind::OneSided => PenaltyForm::OneSided,
        },
        seed: scenario.seed,
        ledger,
        push_sum: push_sum_rule(scenario),
        ..FabConfig::new(scenario.swarm.agents, task, validation_batch, training.batch)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunLength {
    /// Rounds in which the mean agent goes through its training samples once.
    pub(super) epoch: u32,
    pub(super) rounds: u32,
}

impl RunLength {
    /// The length of a run on `samples` training samples of `agents` agents.
    pub(super) fn new(training: &TrainingSection, agents: usize, samples: usize) -> Self {
        let epoch = samples.div_ceil(agents * training.batch).max(1) as u32;
        RunLength { epoch, rounds: training.epochs.saturating_mul(epoch) }
    }
}
