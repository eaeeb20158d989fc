//! The methods: one interface over the same swarm, one file each.

mod fab;
mod lt_admm;
mod rule_on_oracle;
mod simulated;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use fabswarm_shared::problem::{Penalty, PenaltyForm};
use fabswarm_sim::method::{Network, RuleKind};
use fabswarm_sim::scenario::AlgorithmKind;
use fabswarm_sim::task::Task;
use fabswarm_sim::trial::BuildError;
use serde::{Deserialize, Serialize};

use crate::experiment_config::ExperimentConfig;
use rule_on_oracle::RuleOnOracle;

/// A method at work on a swarm.
pub(crate) trait Method {
    /// One iteration: one round of communication, or one outer iteration of a double loop.
    fn iterate(&mut self);

    fn measure(&self) -> ErrorMeasures;

    fn rounds(&self) -> u32;

    /// Floats that arrived so far, on all links together.
    fn floats(&self) -> u64;

    /// Numbers that an agent keeps from one iteration to the next, apart from its data; 0 where they are not counted.
    fn memory(&self) -> usize {
        0
    }

    /// The squared mean gradient at the mean state, where no solution is known.
    fn stationarity(&mut self) -> Option<f64> {
        None
    }
}

/// The errors of a swarm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ErrorMeasures {
    /// `mean_i ‖x_i − x*‖ / ‖x*‖`; 1 where x* is not known.
    pub(crate) error: f64,
    /// `√(mean_i ‖x_i − x̄‖²) / ‖x̄‖`; of the whole row where x* is not known.
    pub(crate) consensus: f64,
}

/// The step sizes of a method, on gradients that are not divided by λ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepSizes {
    /// On the upper variable x. FAB's η_x is λ times this.
    pub(crate) upper: f64,
    /// On the lower variables y, z or v. FAB's η_y = η_z are this.
    pub(crate) lower: f64,
    /// On z, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) twin: Option<f64>,
}

/// The methods, by the names that experiments call them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MethodKind {
    Fab,
    CentralizedFab,
    StaticFab,
    StaticFabConnected,
    StaticFabSplit,
    PushSumFab,
    PushPullSoba,
    SimulatedFab,
    SimulatedFabMomentum,
    LedgerFab,
    LedgerFabMomentum,
    PushPull,
    SubgradientPush,
    PushSgd,
    PushDiging,
    PushSaga,
    PushAsgd,
    DlPushPull,
    DlSubgradientPush,
    DlPushSgd,
    DlPushDiging,
    DlPushSaga,
    DlPushAsgd,
    LtAdmm,
    LtAdmmFab,
    LtAdmmFabOneStep,
}

/// The design of a method.
enum Design {
    Fab(fab::FabVariant),
    Soba,
    Simulated {
        kind: AlgorithmKind,
        momentum: f64,
    },
    SingleLevel(RuleKind),
    DoubleLoop(RuleKind),
    LtAdmm,
    /// LT-ADMM under FAB, with as many local steps.
    LtAdmmFab(u32),
}

impl MethodKind {
    /// The name in legends and tables.
    pub(crate) fn label(self) -> &'static str {
        self.definition().0
    }

    /// Returns whether it has a step on a lower variable too.
    pub(crate) fn is_bilevel(self) -> bool {
        !matches!(self.definition().1, Design::SingleLevel(_) | Design::LtAdmm)
    }

    /// The label, the paper's where it has one, and the design.
    fn definition(self) -> (&'static str, Design) {
        use fab::FabVariant;
        let plain = |momentum| Design::Simulated { kind: AlgorithmKind::Fab, momentum };
        let ledger = |momentum| Design::Simulated { kind: AlgorithmKind::Ledger, momentum };
        match self {
            Self::Fab => ("FAB", Design::Fab(FabVariant::PushPull)),
            Self::CentralizedFab => ("Centralized_FAB", Design::Fab(FabVariant::Centralized)),
            Self::StaticFab => ("Static_FAB", Design::Fab(FabVariant::Static)),
            Self::StaticFabConnected => {
                ("Static_FAB (connected links kept)", Design::Fab(FabVariant::Kept { is_connected: true }))
            }
            Self::StaticFabSplit => {
                ("Static_FAB (split links kept)", Design::Fab(FabVariant::Kept { is_connected: false }))
            }
            Self::PushSumFab => ("PushSum_FAB", Design::Fab(FabVariant::PushSum)),
            Self::PushPullSoba => ("PushPull_SOBA", Design::Soba),
            Self::SimulatedFab => ("FAB (simulator)", plain(0.0)),
            Self::SimulatedFabMomentum => ("FAB (simulator), β=.7", plain(0.7)),
            Self::LedgerFab => ("FAB with ledger", ledger(0.0)),
            Self::LedgerFabMomentum => ("FAB with ledger, β=.7", ledger(0.7)),
            Self::PushPull => ("Push-Pull", Design::SingleLevel(RuleKind::PushPull)),
            Self::SubgradientPush => ("Subgradient-push", Design::SingleLevel(RuleKind::SubgradientPush)),
            Self::PushSgd => ("Push-SGD", Design::SingleLevel(RuleKind::PushSgd)),
            Self::PushDiging => ("Push-DIGing", Design::SingleLevel(RuleKind::PushDiging)),
            Self::PushSaga => ("Push-SAGA", Design::SingleLevel(RuleKind::PushSaga)),
            Self::PushAsgd => ("Push-ASGD", Design::SingleLevel(RuleKind::PushAsgd)),
            Self::DlPushPull => ("DL-Push-Pull", Design::DoubleLoop(RuleKind::PushPull)),
            Self::DlSubgradientPush => ("DL-Subgradient-push", Design::DoubleLoop(RuleKind::SubgradientPush)),
            Self::DlPushSgd => ("DL-Push-SGD", Design::DoubleLoop(RuleKind::PushSgd)),
            Self::DlPushDiging => ("DL-Push-DIGing", Design::DoubleLoop(RuleKind::PushDiging)),
            Self::DlPushSaga => ("DL-Push-SAGA", Design::DoubleLoop(RuleKind::PushSaga)),
            Self::DlPushAsgd => ("DL-Push-ASGD", Design::DoubleLoop(RuleKind::PushAsgd)),
            Self::LtAdmm => ("LT-ADMM", Design::LtAdmm),
            Self::LtAdmmFab => ("FAB by LT-ADMM, τ=5", Design::LtAdmmFab(5)),
            Self::LtAdmmFabOneStep => ("FAB by LT-ADMM, τ=1", Design::LtAdmmFab(1)),
        }
    }

    /// The method at rest on the problem of `seed`.
    pub(crate) fn start(
        self,
        setting: &ExperimentConfig,
        steps: StepSizes,
        seed: u64,
    ) -> Result<Box<dyn Method>, BuildError> {
        let task = Rc::new(Task::load(&setting.scenario(seed))?);
        let start = MethodStart { task, setting, steps, seed };
        Ok(match self.definition().1 {
            Design::Fab(variant) => fab::start(variant, &start)?,
            Design::Soba => Box::new(RuleOnOracle::soba(&start)?),
            Design::Simulated { kind, momentum } => {
                Box::new(simulated::SimulatedFab::new(&start, kind, momentum)?)
            }
            Design::SingleLevel(rule) => Box::new(RuleOnOracle::single_level(rule, &start)?),
            Design::DoubleLoop(rule) => Box::new(RuleOnOracle::double_loop(rule, &start)?),
            Design::LtAdmm => Box::new(lt_admm::LtAdmm::single_level(&start)?),
            Design::LtAdmmFab(steps) => Box::new(lt_admm::LtAdmm::bilevel(&start, steps)?),
        })
    }
}

/// The inputs of a method.
struct MethodStart<'a> {
    task: Rc<Task<f64>>,
    setting: &'a ExperimentConfig,
    steps: StepSizes,
    seed: u64,
}

impl MethodStart<'_> {
    fn network(&self) -> Result<Network, BuildError> {
        Ok(self.setting.link_rule(self.seed)?.network(self.setting.loss, self.seed))
    }

    /// The penalty on the lower level; gradients are divided by λ.
    fn penalty(&self) -> Penalty<f64> {
        Penalty { lambda: self.setting.lambda, normalise: true, form: PenaltyForm::OneSided }
    }

    /// The start of every agent.
    fn first_row(&self) -> Vec<f64> {
        self.task.start()
    }
}
