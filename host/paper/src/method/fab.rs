//! FAB, Algorithm 1, and its variants. All descend along the gradient of the penalty function, eq. (7), with steps
//! η_x, η_y, η_z on x, y and z:
//!
//! - **FAB**: push-pull, eqs. (6) and (8);
//! - **Centralized_FAB**: one machine that knows all gradients, which is F²SA (Kwon et al., 2023);
//! - **Static_FAB**: push-pull with the weights of the first round's graph for ever, whatever the links are;
//! - **PushSum_FAB**: the paper's Algorithm 3, push-sum with tracking.

use std::rc::Rc;

use fabswarm_sim::method::{LinkWeights, MeanPenaltyGradient, PenaltyGradient, RuleKind};
use fabswarm_sim::trial::BuildError;

use super::rule_on_oracle::RuleOnOracle;
use super::{Method, MethodStart};
use crate::network::LinkRule;

/// The mixing of agents.
#[derive(Clone, Copy, Debug)]
pub(super) enum FabVariant {
    PushPull,
    PushSum,
    Centralized,
    Static,
    /// [`FabVariant::Static`], with the links of one round for ever.
    Kept {
        /// Whether that round's graph is strongly connected.
        is_connected: bool,
    },
}

pub(super) fn start(variant: FabVariant, start: &MethodStart<'_>) -> Result<Box<dyn Method>, BuildError> {
    let MethodStart { setting, seed, .. } = *start;
    let shape = start.task.shape();
    let mut steps = vec![setting.lambda * start.steps.upper; shape.x];
    steps.resize(shape.x + shape.y, start.steps.lower);
    steps.resize(shape.words(), start.steps.twin.unwrap_or(start.steps.lower));
    let rule = if matches!(variant, FabVariant::PushSum) { RuleKind::PushDiging } else { RuleKind::PushPull };
    let row = start.first_row();
    let oracle = PenaltyGradient::new(Rc::clone(&start.task), start.penalty());
    let network = match variant {
        FabVariant::PushPull | FabVariant::PushSum => start.network()?,
        FabVariant::Static => LinkRule::FirstWeights(setting.graphs(seed)?).network(setting.loss, seed),
        FabVariant::Kept { is_connected } => {
            LinkRule::kept(&*setting.graphs(seed)?, is_connected)?.network(setting.loss, seed)
        }
        FabVariant::Centralized => {
            let network = LinkRule::Fixed(Rc::new(LinkWeights::none(1))).network(0.0, seed);
            let oracle = MeanPenaltyGradient::new(oracle, setting.agents);
            return Ok(Box::new(RuleOnOracle::new(start, network, rule, oracle, steps, &row)));
        }
    };
    Ok(Box::new(RuleOnOracle::new(start, network, rule, oracle, steps, &row)))
}
