//! Methods of one level, written once over [`RowOps`]: loops of double loops too and, with other oracles, FAB and its variants.
//!
//! Push-Pull mixes decisions by A and trackers by B. All others push mass u and push-sum weights w by B, and take $z = u/w$ for
//! the solution:
//!
//! $$u^{k+1} = B^k u^k,\quad w^{k+1} = B^k w^k,\quad z^{k+1} = u^{k+1}/w^{k+1},\quad
//!   t^{k+1} = B^k t^k + \nabla f(z^{k+1}) - \nabla f(z^k)$$
//!
//! They differ in where u descends, and whether along the tracker t.

use super::links::Matrix;
use super::row_ops::RowOps;

/// A method of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// AB/Push-Pull over time-varying directed graphs, TV-AB (Saadatniaki, Xin and Khan, 2020; Nedić et al., 2025), the paper's
    /// Algorithm 2:
    ///
    /// $$x^{k+1} = A^k x^k - \eta\,t^k,\qquad t^{k+1} = B^k t^k + \nabla f(x^{k+1}) - \nabla f(x^k)$$
    PushPull,
    /// Subgradient-push (Nedić and Olshevsky, 2015): pushes, then descends with a diminishing step, after which
    /// $u^{k+1} = B^k u^k - \tfrac{\eta}{\sqrt{k+1}}\nabla f(z^{k+1})$. It does not track.
    SubgradientPush,
    /// SGP, also called Push-SGD (Nedić and Olshevsky, 2016; Assran et al., 2019): descends, then pushes,
    /// $u^{k+1} = B^k\,(u^k - \eta\nabla f(z^k))$. It does not track.
    PushSgd,
    /// Push-DIGing (Nedić, Olshevsky and Shi, 2017): $u^{k+1} = B^k (u^k - \eta\,t^k)$; on the penalty the paper's PushSum_FAB.
    PushDiging,
    /// Push-SAGA (Qureshi, Xin, Kar and Khan, 2020): $u^{k+1} = B^k u^k - \eta\,t^k$, along SAGA estimates of the local gradients.
    ///
    /// A SAGA estimate is the gradient of one sample, corrected by a table of all samples' last gradients. As in the paper, agents
    /// here use full batches: the table has one entry, which cancels, and the estimate is ∇f(x). What is left is ADD-OPT (Xi, Xin
    /// and Khan, 2018), a method that tracks gradients; it is not Push-SGD, as the paper says, which does not.
    PushSaga,
    /// Push-ASGD (Chen, Hashemi and Vikalo, 2025): Push-DIGing with momentum β on the gradients. We read its "gradient
    /// acceleration" as the recursive momentum that reaches the complexity $O(\varepsilon^{-1.5})$ it proves:
    ///
    /// $$m^{k+1} = \nabla f(z^{k+1};\xi^{k+1}) + (1-\beta)\,\bigl(m^k - \nabla f(z^k;\xi^{k+1})\bigr),\qquad
    ///   t^{k+1} = B^k t^k + m^{k+1} - m^k$$
    ///
    /// Without noise m is the gradient, and the method Push-DIGing; with noise β = 1 is.
    PushAsgd,
}

/// The state of a method of one level, for all agents.
#[derive(Clone, Debug)]
pub struct Rule<V> {
    kind: RuleKind,
    /// β of Push-ASGD.
    momentum: f64,
    /// The mass u; the decisions of Push-Pull, which has neither w nor z.
    u: V,
    w: Vec<f64>,
    z: V,
    /// The trackers, where the method tracks.
    t: V,
    /// The gradients that were added to the trackers last; Push-ASGD's m.
    d: V,
    rounds: u32,
}

impl<V: Clone> Rule<V> {
    /// At rest at `v`. `momentum` is the β of Push-ASGD.
    pub fn start(kind: RuleKind, momentum: f64, ops: &mut impl RowOps<Value = V>, v: V) -> Self {
        let d = match kind {
            RuleKind::SubgradientPush | RuleKind::PushSgd => v.clone(),
            _ => ops.gradient(&v),
        };
        Self { kind, momentum, u: v.clone(), w: vec![1.0; ops.agents()], z: v, t: d.clone(), d, rounds: 0 }
    }

    /// Takes all agents through one round.
    pub fn step(&mut self, ops: &mut impl RowOps<Value = V>) {
        self.rounds += 1;
        self.u = match self.kind {
            RuleKind::PushPull => {
                let pulled = ops.mix(Matrix::Pull, &self.u);
                let descended = ops.descend(&pulled, &self.t, 1.0);
                ops.project(&descended)
            }
            RuleKind::SubgradientPush => ops.mix(Matrix::Push, &self.u),
            RuleKind::PushSgd => {
                let d = ops.gradient(&self.z);
                let descended = ops.descend(&self.u, &d, 1.0);
                ops.mix(Matrix::Push, &descended)
            }
            RuleKind::PushDiging | RuleKind::PushAsgd => {
                let descended = ops.descend(&self.u, &self.t, 1.0);
                ops.mix(Matrix::Push, &descended)
            }
            RuleKind::PushSaga => {
                let pushed = ops.mix(Matrix::Push, &self.u);
                ops.descend(&pushed, &self.t, 1.0)
            }
        };
        let mut last = None;
        if self.kind != RuleKind::PushPull {
            self.w = ops.push_weights(&self.w);
            let ratio = ops.divide(&self.u, &self.w);
            last = Some(std::mem::replace(&mut self.z, ops.project(&ratio)));
        }
        match (self.kind, last) {
            (RuleKind::PushSgd, _) => {}
            (RuleKind::SubgradientPush, _) => {
                let d = ops.gradient(&self.z);
                self.u = ops.descend(&self.u, &d, 1.0 / f64::from(self.rounds).sqrt());
            }
            (RuleKind::PushAsgd, Some(last)) => {
                let gradient = ops.gradient(&self.z);
                let before = ops.gradient_again(&last);
                let kept = ops.add(&self.d, -1.0, &before);
                let m = ops.add(&gradient, 1.0 - self.momentum, &kept);
                self.track(ops, m);
            }
            _ => {
                let gradient = ops.gradient(self.estimate());
                self.track(ops, gradient);
            }
        }
    }

    fn track(&mut self, ops: &mut impl RowOps<Value = V>, newest: V) {
        self.t = ops.track(&self.t, &newest, &self.d);
        self.d = newest;
    }

    /// The push-sum weights.
    pub fn weights(&self) -> &[f64] {
        &self.w
    }

    /// The trackers, and the gradients that were added to them last, where the method tracks.
    pub fn trackers(&self) -> Option<[&V; 2]> {
        (!matches!(self.kind, RuleKind::SubgradientPush | RuleKind::PushSgd)).then_some([&self.t, &self.d])
    }

    /// The agents' estimates of the solution.
    pub fn estimate(&self) -> &V {
        if self.kind == RuleKind::PushPull { &self.u } else { &self.z }
    }

    /// Words that an agent keeps from one round to the next, for rows of `words` words.
    pub const fn words_kept(&self, words: usize) -> usize {
        match self.kind {
            RuleKind::PushPull => 3 * words,
            RuleKind::SubgradientPush | RuleKind::PushSgd => 2 * words + 1,
            RuleKind::PushDiging | RuleKind::PushSaga | RuleKind::PushAsgd => 4 * words + 1,
        }
    }

    /// Words that cross each link in a round, for rows of `words` words.
    pub const fn words_per_link(&self, words: usize) -> usize {
        match self.kind {
            RuleKind::PushPull => 2 * words,
            RuleKind::SubgradientPush | RuleKind::PushSgd => words + 1,
            RuleKind::PushDiging | RuleKind::PushSaga | RuleKind::PushAsgd => 2 * words + 1,
        }
    }
}
