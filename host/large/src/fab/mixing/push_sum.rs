//! Methods of one level that divide what they push by push-sum weights.
//!
//! Mass u and weights w both move by column-stochastic weights B, and agents take z = u/w for the solution. The weights w
//! follow from the graphs alone, so here z itself is stepped, with rows $\tilde a_{ij} = b_{ij} w_j / w_i^+$ that sum to one:
//!
//! | | z of the next round | t |
//! |---|---|---|
//! | Push-SGD | $\tilde A\,(z - \eta\,t/w)$ | the gradient |
//! | subgradient-push | the same, with a step that shrinks as $1/\sqrt k$ | the gradient |
//! | Push-DIGing | $\tilde A\,(z - \eta\,t/w)$ | tracks the gradient by B |
//! | Push-ASGD | as Push-DIGing | tracks $m^+ = \nabla f(z^+) + (1-\beta)\,(m - \nabla f(z))$ by B, both on one round's samples |
//! | Push-SAGA | $\tilde A\,z - \eta\,t/w^+$ | tracks the gradient by B |
//!
//! A table of all samples' gradients, which makes Push-SAGA out of S-ADDOPT, is left out: a large agent has no memory for it.

use crate::fab::exchange::WeightExchange;
use crate::mixing::MixingMatrix;

/// A method of one level with push-sum weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PushSumRule {
    /// Push-SGD with a step that shrinks as 1/√k.
    SubgradientPush,
    /// Agents step by their gradients, then average.
    PushSgd,
    /// Agents step by trackers of the gradient, then average.
    PushDiging,
    /// Agents average, then step by trackers of the gradient.
    PushSaga,
    /// Push-DIGing with trackers of an estimate by momentum.
    PushAsgd {
        /// β.
        momentum: f64,
    },
}

impl PushSumRule {
    /// Whether agents follow the mean gradient, and send what they know of it.
    pub fn has_trackers(self) -> bool {
        matches!(self, Self::PushDiging | Self::PushSaga | Self::PushAsgd { .. })
    }

    /// Whether agents descend before they push.
    pub(in crate::fab) fn descends_first(self) -> bool {
        self != Self::PushSaga
    }

    /// The 1 − β of a method that needs the gradient at its last estimate as well.
    pub(in crate::fab) fn kept(self) -> Option<f64> {
        match self {
            Self::PushAsgd { momentum } => Some(1.0 - momentum),
            _ => None,
        }
    }
}

/// The push-sum weights of all agents, round by round.
#[derive(Clone, Debug)]
pub struct PushSumWeights {
    rule: PushSumRule,
    weights: Vec<f64>,
    round: u32,
}

impl PushSumWeights {
    /// Before the first round.
    pub fn new(rule: PushSumRule, agents: usize) -> Self {
        PushSumWeights { rule, weights: vec![1.0; agents], round: 0 }
    }

    /// Goes through one more round, with these push weights.
    pub fn step(&mut self, push: MixingMatrix) -> WeightExchange {
        let before = std::mem::take(&mut self.weights);
        let mut pull = push.clone();
        for row in &mut pull.rows {
            row.iter_mut().for_each(|(sender, weight)| *weight *= before[*sender]);
            let whole: f64 = row.iter().map(|&(_, mass)| mass).sum();
            row.iter_mut().for_each(|(_, mass)| *mass /= whole);
            self.weights.push(whole);
        }
        let divisors = if self.rule.descends_first() { &before } else { &self.weights };
        let step = match (self.rule, self.round) {
            // It descends after it has pushed: what is pushed first has no gradient in it.
            (PushSumRule::SubgradientPush, 0) => 0.0,
            (PushSumRule::SubgradientPush, rounds) => 1.0 / f64::from(rounds).sqrt(),
            _ => 1.0,
        };
        let factors = divisors.iter().map(|weight| step / weight).collect();
        self.round += 1;
        let nothing = || MixingMatrix { rows: vec![Vec::new(); before.len()] };
        let push = if self.rule.has_trackers() { push } else { nothing() };
        WeightExchange { pull, push, factors: Some(factors) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_sum_to_one_even_where_mass_is_lost() {
        let heard = vec![vec![1, 2], vec![0], vec![0, 1]];
        let arrived = vec![vec![2], vec![], vec![0, 1]];
        let mut weights = PushSumWeights::new(PushSumRule::PushDiging, 3);
        for _ in 0..20 {
            let (_, push) = MixingMatrix::over_losses(&heard, &arrived);
            let exchange = weights.step(push);
            for agent in 0..3 {
                let sum: f64 = exchange.pull.row(agent).map(|(_, weight)| weight).sum();
                assert!((sum - 1.0).abs() < 1e-12);
            }
        }
    }
}
