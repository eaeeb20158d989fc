//! FAB, Algorithm 1, and its variants. All descend along the gradient of the penalty function, eq. (7), with steps
//! η_x, η_y, η_z on x, y and z:
//!
//! - **FAB**: push-pull, eqs. (6) and (8);
//! - **Centralized_FAB**: one machine that knows all gradients, which is F²SA (Kwon et al., 2023);
//! - **Static_FAB**: push-pull with the weights of the first round's graph for ever, whatever the links are;
//! - **PushSum_FAB**: the paper's Algorithm 3, push-sum with tracking.

use std::rc::Rc;

use fabswarm_sim::task::Task;
use fabswarm_sim::trial::BuildError;

use super::composed::{Composed, Constants, Target};
use super::{Method, StepSizes};
use crate::links::Links;
use crate::network::{LinkRule, Network};
use crate::oracle::{MeanPenaltyGradient, PenaltyGradient};
use crate::rule::RuleKind;
use crate::setting::Setting;

/// How agents mix.
#[derive(Clone, Copy, Debug)]
pub(super) enum FabVariant {
    PushPull,
    PushSum,
    Centralized,
    Static {
        /// Whether frames travel only over the links of each round.
        links_vanish: bool,
    },
}

pub(super) fn start(
    variant: FabVariant,
    task: Rc<Task<f64>>,
    setting: &Setting,
    steps: StepSizes,
    seed: u64,
) -> Result<Box<dyn Method>, BuildError> {
    let shape = task.shape();
    let lambda = setting.lambda;
    let mut packed = vec![lambda * steps.upper; shape.x];
    packed.resize(shape.x + shape.y, steps.lower);
    packed.resize(shape.words(), steps.twin.unwrap_or(steps.lower));
    let rule = if matches!(variant, FabVariant::PushSum) { RuleKind::PushDiging } else { RuleKind::PushPull };
    let constants = Constants { rule, momentum: setting.momentum, steps: packed, decay: setting.decay };
    let mut start = vec![0.0; shape.words()];
    task.start(&mut start);
    let target = Target::of(&task);
    let links = match variant {
        FabVariant::PushPull | FabVariant::PushSum => setting.link_rule(seed)?,
        FabVariant::Static { links_vanish } => {
            LinkRule::FirstRound { graphs: setting.graphs(seed)?, links_vanish }
        }
        FabVariant::Centralized => {
            let network = Network::new(LinkRule::Fixed(Rc::new(Links::none(1))), 0.0, seed);
            let oracle = MeanPenaltyGradient::new(task, lambda, setting.agents);
            return Ok(Box::new(Composed::new(network, oracle, constants, &start, target)));
        }
    };
    let network = Network::new(links, setting.loss, seed);
    Ok(Box::new(Composed::new(network, PenaltyGradient::new(task, lambda), constants, &start, target)))
}
