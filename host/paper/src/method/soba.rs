//! PushPull_SOBA, the paper's Algorithm 4: push-pull on the directions of SOBA ([`SobaDirection`]), which need products with
//! second derivatives of g.

use std::rc::Rc;

use fabswarm_sim::task::Task;
use fabswarm_sim::trial::BuildError;

use super::StepSizes;
use super::composed::{Composed, Constants, Target};
use crate::network::Network;
use crate::oracle::SobaDirection;
use crate::rule::RuleKind;
use crate::setting::Setting;

pub(super) fn composed(
    task: Rc<Task<f64>>,
    setting: &Setting,
    steps: StepSizes,
    seed: u64,
) -> Result<Composed<SobaDirection>, BuildError> {
    let shape = task.shape();
    let mut packed = vec![steps.upper; shape.x];
    packed.resize(shape.words(), steps.lower);
    let constants = Constants {
        rule: RuleKind::PushPull,
        momentum: setting.momentum,
        steps: packed,
        decay: setting.decay,
    };
    let mut start = vec![0.0; shape.words()];
    task.start(&mut start);
    let target = Target::of(&task);
    let network = Network::new(setting.link_rule(seed)?, setting.loss, seed);
    Ok(Composed::new(network, SobaDirection::new(task, setting.agents), constants, &start, target))
}
