//! Methods of one level, each written once over [`RowOps`]. They run by themselves, as the inner and outer loop of a double
//! loop, and, with other oracles, as FAB and its variants.

mod push_asgd;
mod push_diging;
mod push_pull;
mod push_sgd;
mod subgradient_push;

pub use push_asgd::PushAsgd;
pub use push_diging::PushDiging;
pub use push_pull::PushPull;
pub use push_sgd::PushSgd;
pub use subgradient_push::SubgradientPush;

use crate::row_ops::RowOps;

/// A method of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// [`PushPull`].
    PushPull,
    /// [`SubgradientPush`].
    SubgradientPush,
    /// [`PushSgd`].
    PushSgd,
    /// [`PushDiging`].
    PushDiging,
    /// [`PushDiging`] that pushes first.
    PushSaga,
    /// [`PushAsgd`].
    PushAsgd,
}

/// The state of a method of one level.
#[derive(Clone, Debug)]
pub enum Rule<V> {
    /// [`RuleKind::PushPull`].
    PushPull(PushPull<V>),
    /// [`RuleKind::SubgradientPush`].
    SubgradientPush(SubgradientPush<V>),
    /// [`RuleKind::PushSgd`].
    PushSgd(PushSgd<V>),
    /// [`RuleKind::PushDiging`] and [`RuleKind::PushSaga`].
    PushDiging(PushDiging<V>),
    /// [`RuleKind::PushAsgd`].
    PushAsgd(PushAsgd<V>),
}

macro_rules! each_rule {
    ($self:ident, $rule:ident => $call:expr) => {
        match $self {
            Rule::PushPull($rule) => $call,
            Rule::SubgradientPush($rule) => $call,
            Rule::PushSgd($rule) => $call,
            Rule::PushDiging($rule) => $call,
            Rule::PushAsgd($rule) => $call,
        }
    };
}

impl<V: Clone> Rule<V> {
    /// At rest at `v`. `momentum` is the β of Push-ASGD.
    pub fn start(kind: RuleKind, momentum: f64, ops: &mut impl RowOps<Value = V>, v: V) -> Self {
        match kind {
            RuleKind::PushPull => Self::PushPull(PushPull::start(ops, v)),
            RuleKind::SubgradientPush => Self::SubgradientPush(SubgradientPush::start(ops, v)),
            RuleKind::PushSgd => Self::PushSgd(PushSgd::start(ops, v)),
            RuleKind::PushDiging => Self::PushDiging(PushDiging::start(ops, v, false)),
            RuleKind::PushSaga => Self::PushDiging(PushDiging::start(ops, v, true)),
            RuleKind::PushAsgd => Self::PushAsgd(PushAsgd::start(ops, v, momentum)),
        }
    }

    /// Takes all agents through one round.
    pub fn step(&mut self, ops: &mut impl RowOps<Value = V>) {
        each_rule!(self, rule => rule.step(ops));
    }

    /// What agents take for the solution.
    pub fn estimate(&self) -> &V {
        each_rule!(self, rule => rule.estimate())
    }

    /// The push-sum weights of the agents, for methods that have them.
    #[must_use]
    pub fn push_sum_weights(&self) -> Option<&[f64]> {
        match self {
            Self::PushPull(_) => None,
            Self::SubgradientPush(rule) => Some(&rule.w),
            Self::PushSgd(rule) => Some(&rule.w),
            Self::PushDiging(rule) => Some(&rule.w),
            Self::PushAsgd(rule) => Some(&rule.w),
        }
    }

    /// Words that cross each link in a round, for rows of `words` words.
    #[must_use]
    pub const fn words_per_link(&self, words: usize) -> usize {
        match self {
            Self::PushPull(_) => 2 * words,
            Self::SubgradientPush(_) | Self::PushSgd(_) => words + 1,
            Self::PushDiging(_) | Self::PushAsgd(_) => 2 * words + 1,
        }
    }
}
