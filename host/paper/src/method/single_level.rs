//! Methods of one level on the task's form of one level, the regularised Bellman error ([`BellmanError`]).

use fabswarm_sim::trial::BuildError;

use super::MethodStart;
use super::composed::Composed;
use crate::oracle::BellmanError;
use crate::rule::RuleKind;

pub(super) fn composed(rule: RuleKind, start: MethodStart<'_>) -> Result<Composed<BellmanError>, BuildError> {
    let words = start.task.shape().x;
    let steps = vec![start.steps.upper; words];
    Ok(Composed::new(&start, start.network()?, rule, start.bellman(), steps, &vec![0.0; words]))
}
