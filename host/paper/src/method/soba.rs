//! PushPull_SOBA, the paper's Algorithm 4: push-pull on the directions of SOBA ([`SobaDirection`]), which need products with
//! second derivatives of g.

use std::rc::Rc;

use fabswarm_sim::trial::BuildError;

use super::MethodStart;
use super::composed::Composed;
use crate::oracle::SobaDirection;
use crate::rule::RuleKind;

pub(super) fn composed(start: MethodStart<'_>) -> Result<Composed<SobaDirection>, BuildError> {
    let shape = start.task.shape();
    let mut steps = vec![start.steps.upper; shape.x];
    steps.resize(shape.words(), start.steps.lower);
    let oracle = SobaDirection::new(Rc::clone(&start.task), start.setting.agents);
    Ok(Composed::new(&start, start.network()?, RuleKind::PushPull, oracle, steps, &start.first_row()))
}
