//! Methods of one level on the task's form of one level, the regularised Bellman error ([`BellmanError`]).

use std::rc::Rc;

use fabswarm_sim::task::Task;
use fabswarm_sim::trial::BuildError;

use super::StepSizes;
use super::composed::{Composed, Constants, Target};
use crate::network::Network;
use crate::oracle::BellmanError;
use crate::rule::RuleKind;
use crate::setting::Setting;

pub(super) fn composed(
    rule: RuleKind,
    task: Rc<Task<f64>>,
    setting: &Setting,
    steps: StepSizes,
    seed: u64,
) -> Result<Composed<BellmanError>, BuildError> {
    let words = task.shape().x;
    let constants =
        Constants { rule, momentum: setting.momentum, steps: vec![steps.upper; words], decay: setting.decay };
    let target = Target::of(&task);
    let network = Network::new(setting.link_rule(seed)?, setting.loss, seed);
    let oracle = BellmanError::new(task).expect("a setting draws tasks of policy evaluation");
    Ok(Composed::new(network, oracle, constants, &vec![0.0; words], target))
}
