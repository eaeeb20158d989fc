//! A case of a claim: two series compared seed by seed, or one series held against a condition.

use std::cmp::Ordering;

/// The verdict on a claim in one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CaseOutcome {
    /// The contrary was measured.
    Fails,
    /// Neither the claim nor the contrary.
    Tie,
    /// As claimed.
    Holds,
}

impl From<bool> for CaseOutcome {
    fn from(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) outcome: CaseOutcome,
    pub(crate) measured: String,
}

/// A comparison of two series, seed by seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    pub(crate) outcome: CaseOutcome,
    /// The mean advantage of the one that is claimed to be better.
    pub(crate) advantage: f64,
}

impl Comparison {
    /// From the advantage on each seed: a sign-flip test finds those that are beyond `margin`, on either side.
    pub(crate) fn of(advantages: &[f64], margin: f64) -> Self {
        let is_beyond = |sign: f64| {
            is_positive(&advantages.iter().map(|advantage| sign * advantage - margin).collect::<Vec<_>>())
        };
        let outcome = match () {
            () if is_beyond(1.0) => CaseOutcome::Holds,
            () if is_beyond(-1.0) => CaseOutcome::Fails,
            () => CaseOutcome::Tie,
        };
        Self { outcome, advantage: advantages.iter().sum::<f64>() / advantages.len() as f64 }
    }

    /// The less favourable comes first.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        self.outcome.cmp(&other.outcome).then(self.advantage.total_cmp(&other.advantage))
    }
}

/// Whether values are above zero: at most 5 % of all choices of their signs have as large a sum. It takes five values at least.
fn is_positive(values: &[f64]) -> bool {
    /// With more values, the sums are normal.
    const FEW: usize = 16;
    let sum: f64 = values.iter().sum();
    if values.len() > FEW {
        return sum > 1.645 * values.iter().map(|value| value * value).sum::<f64>().sqrt();
    }
    let flipped = |signs: u32| -> f64 {
        values.iter().enumerate().map(|(at, value)| if signs >> at & 1 == 0 { *value } else { -value }).sum()
    };
    let choices = 1_u32 << values.len();
    // Sums of the same numbers differ by rounding.
    let tolerance = 1e-9 * values.iter().map(|value| value.abs()).sum::<f64>();
    let as_large = (0..choices).filter(|&signs| flipped(signs) >= sum - tolerance).count();
    sum > 0.0 && 20 * as_large <= choices as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_seeds_decide_and_what_is_within_the_margin_is_a_tie() {
        let outcome = |advantages: &[f64]| Comparison::of(advantages, 0.05).outcome;
        assert_eq!(outcome(&[0.2, 0.1, 0.3, 0.1, 0.2]), CaseOutcome::Holds);
        assert_eq!(outcome(&[-0.2, -0.1, -0.3, -0.1, -0.2]), CaseOutcome::Fails);
        assert_eq!(outcome(&[0.2, 0.1, 0.3, 0.1]), CaseOutcome::Tie, "four seeds");
        assert_eq!(outcome(&[0.04; 20]), CaseOutcome::Tie, "within the margin");
        assert_eq!(outcome(&[0.3, -0.2, 0.3, -0.2, 0.3, -0.2]), CaseOutcome::Tie, "seeds that disagree");
        assert_eq!(outcome(&[0.2; 20]), CaseOutcome::Holds);
    }
}
