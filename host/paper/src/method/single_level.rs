//! Methods of one level on the task's form of one level, the regularised Bellman error ([`BellmanError`]).

use std::rc::Rc;

use fabswarm_sim::task::Task;

use super::composed::{Composed, Constants, Target};
use super::{Method, StepSizes};
use crate::network::Network;
use crate::oracle::BellmanError;
use crate::rule::RuleKind;
use crate::setting::Setting;

pub(super) fn start(
    rule: RuleKind,
    task: Rc<Task<f64>>,
    setting: &Setting,
    steps: StepSizes,
    seed: u64,
) -> Box<dyn Method> {
    Box::new(composed(rule, task, setting, steps, seed))
}

pub(super) fn composed(
    rule: RuleKind,
    task: Rc<Task<f64>>,
    setting: &Setting,
    steps: StepSizes,
    seed: u64,
) -> Composed<BellmanError> {
    let words = task.shape().x;
    let constants =
        Constants { rule, momentum: setting.momentum, steps: vec![steps.upper; words], decay: setting.decay };
    let target = Target::of(&task);
    let network = Network::new(setting.link_rule(seed), setting.loss, seed);
    let oracle = BellmanError::new(task).expect("a setting draws tasks of policy evaluation");
    Composed::new(network, oracle, constants, &vec![0.0; words], target)
}
