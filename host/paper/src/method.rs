//! The methods: one interface over the same swarm, one file each.

mod composed;
mod double_loop;
mod fab;
mod ledger;
mod lt_admm;
mod single_level;
mod soba;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use fabswarm_sim::task::Task;
use fabswarm_sim::trial::BuildError;
use serde::{Deserialize, Serialize};

use crate::rule::RuleKind;
use crate::setting::Setting;

/// A method at work on a swarm.
pub trait Method {
    /// One iteration: one round of communication, or one outer iteration of a double loop.
    fn iterate(&mut self);

    /// Where the swarm stands.
    fn measure(&self) -> Measurement;

    /// Rounds of communication so far.
    fn rounds(&self) -> u32;

    /// Floats that arrived so far, on all links together.
    fn floats(&self) -> u64;
}

/// Where a swarm stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// `mean_i ‖x_i − x*‖ / ‖x*‖`.
    pub error: f64,
    /// `√(mean_i ‖x_i − x̄‖²) / ‖x̄‖`.
    pub consensus: f64,
    /// `‖∇F*(x̄)‖²`, where the method shows its x.
    pub stationarity: Option<f64>,
}

/// The step sizes of a method, on gradients that are not divided by λ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSizes {
    /// On the upper variable x. FAB's η_x is λ times this.
    pub upper: f64,
    /// On the lower variables y, z or v. FAB's η_y = η_z are this.
    pub lower: f64,
    /// On z, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin: Option<f64>,
}

/// The methods, by the names that experiments call them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MethodKind {
    Fab,
    CentralizedFab,
    StaticFab,
    StaticFabKeptLinks,
    PushSumFab,
    PushPullSoba,
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
}

/// What a method does with its problem.
enum Design {
    Fab(fab::FabVariant),
    Soba,
    Ledger { momentum: f64 },
    SingleLevel(RuleKind),
    DoubleLoop(RuleKind),
    LtAdmm,
}

impl MethodKind {
    /// All methods.
    pub const ALL: [Self; 21] = [
        Self::Fab,
        Self::CentralizedFab,
        Self::StaticFab,
        Self::StaticFabKeptLinks,
        Self::PushSumFab,
        Self::PushPullSoba,
        Self::LedgerFab,
        Self::LedgerFabMomentum,
        Self::PushPull,
        Self::SubgradientPush,
        Self::PushSgd,
        Self::PushDiging,
        Self::PushSaga,
        Self::PushAsgd,
        Self::DlPushPull,
        Self::DlSubgradientPush,
        Self::DlPushSgd,
        Self::DlPushDiging,
        Self::DlPushSaga,
        Self::DlPushAsgd,
        Self::LtAdmm,
    ];

    /// The name in legends and tables; the paper's, where it has one.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Fab => "FAB",
            Self::CentralizedFab => "Centralized_FAB",
            Self::StaticFab => "Static_FAB",
            Self::StaticFabKeptLinks => "Static_FAB (links kept)",
            Self::PushSumFab => "PushSum_FAB",
            Self::PushPullSoba => "PushPull_SOBA",
            Self::LedgerFab => "FAB with ledger",
            Self::LedgerFabMomentum => "FAB with ledger, β=.7",
            Self::PushPull => "Push-Pull",
            Self::SubgradientPush => "Subgradient-push",
            Self::PushSgd => "Push-SGD",
            Self::PushDiging => "Push-DIGing",
            Self::PushSaga => "Push-SAGA",
            Self::PushAsgd => "Push-ASGD",
            Self::DlPushPull => "DL-Push-Pull",
            Self::DlSubgradientPush => "DL-Subgradient-push",
            Self::DlPushSgd => "DL-Push-SGD",
            Self::DlPushDiging => "DL-Push-DIGing",
            Self::DlPushSaga => "DL-Push-SAGA",
            Self::DlPushAsgd => "DL-Push-ASGD",
            Self::LtAdmm => "LT-ADMM",
        }
    }

    /// Whether it has a step on a lower variable too.
    #[must_use]
    pub fn is_bilevel(self) -> bool {
        !matches!(self.design(), Design::SingleLevel(_) | Design::LtAdmm)
    }

    fn design(self) -> Design {
        use fab::FabVariant;
        match self {
            Self::Fab => Design::Fab(FabVariant::PushPull),
            Self::CentralizedFab => Design::Fab(FabVariant::Centralized),
            Self::StaticFab => Design::Fab(FabVariant::Static { links_vanish: true }),
            Self::StaticFabKeptLinks => Design::Fab(FabVariant::Static { links_vanish: false }),
            Self::PushSumFab => Design::Fab(FabVariant::PushSum),
            Self::PushPullSoba => Design::Soba,
            Self::LedgerFab => Design::Ledger { momentum: 0.0 },
            Self::LedgerFabMomentum => Design::Ledger { momentum: 0.7 },
            Self::PushPull => Design::SingleLevel(RuleKind::PushPull),
            Self::SubgradientPush => Design::SingleLevel(RuleKind::SubgradientPush),
            Self::PushSgd => Design::SingleLevel(RuleKind::PushSgd),
            Self::PushDiging => Design::SingleLevel(RuleKind::PushDiging),
            Self::PushSaga => Design::SingleLevel(RuleKind::PushSaga),
            Self::PushAsgd => Design::SingleLevel(RuleKind::PushAsgd),
            Self::DlPushPull => Design::DoubleLoop(RuleKind::PushPull),
            Self::DlSubgradientPush => Design::DoubleLoop(RuleKind::SubgradientPush),
            Self::DlPushSgd => Design::DoubleLoop(RuleKind::PushSgd),
            Self::DlPushDiging => Design::DoubleLoop(RuleKind::PushDiging),
            Self::DlPushSaga => Design::DoubleLoop(RuleKind::PushSaga),
            Self::DlPushAsgd => Design::DoubleLoop(RuleKind::PushAsgd),
            Self::LtAdmm => Design::LtAdmm,
        }
    }

    /// The method at rest on the problem of `seed`.
    ///
    /// # Errors
    /// Where a recorded problem or its graphs cannot be read, or the swarm of a ledger cannot be built.
    pub fn start(
        self,
        setting: &Setting,
        steps: StepSizes,
        seed: u64,
    ) -> Result<Box<dyn Method>, BuildError> {
        let task = Rc::new(Task::load(&setting.scenario(seed))?);
        Ok(match self.design() {
            Design::Fab(variant) => fab::start(variant, task, setting, steps, seed)?,
            Design::Soba => Box::new(soba::composed(task, setting, steps, seed)?),
            Design::Ledger { momentum } => Box::new(ledger::LedgerFab::new(setting, steps, momentum, seed)?),
            Design::SingleLevel(rule) => Box::new(single_level::composed(rule, task, setting, steps, seed)?),
            Design::DoubleLoop(rule) => double_loop::start(rule, task, setting, steps, seed)?,
            Design::LtAdmm => Box::new(lt_admm::LtAdmm::new(task, setting, steps, seed)?),
        })
    }
}
