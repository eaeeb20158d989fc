//! Claims on experiments, and whether we see them. A claim and its rule stand in the file of the experiment, written before it is run.

use std::cmp::Ordering;
use std::fmt;

use crate::experiment::{SeriesOutcome, StatedClaim, Workload};

/// The verdict on a claim in one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaseOutcome {
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

/// A case of a claim.
#[derive(Clone, Debug)]
pub struct Case {
    /// The verdict on the claim.
    pub outcome: CaseOutcome,
    /// The measured values.
    pub measured: String,
}

/// Whether a claim was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// In every case.
    Seen,
    /// In none, and the contrary in some.
    NotSeen,
    /// All cases are ties.
    Tie,
    /// In some cases.
    InPart {
        /// Cases in which it holds.
        holds: usize,
        /// Cases that are ties.
        ties: usize,
        /// All cases.
        all: usize,
    },
}

impl Finding {
    /// The finding from what became of the claim in each case.
    pub fn of(cases: &[Case]) -> Self {
        let count = |outcome| cases.iter().filter(|case| case.outcome == outcome).count();
        let (holds, ties, all) = (count(CaseOutcome::Holds), count(CaseOutcome::Tie), cases.len());
        match holds {
            0 if ties == all => Self::Tie,
            0 => Self::NotSeen,
            _ if holds == all => Self::Seen,
            _ => Self::InPart { holds, ties, all },
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seen => formatter.write_str("seen"),
            Self::NotSeen => formatter.write_str("not seen"),
            Self::Tie => formatter.write_str("tie"),
            Self::InPart { holds, ties: 0, all } => write!(formatter, "in part: {holds} of {all}"),
            Self::InPart { holds, ties, all } => {
                write!(formatter, "in part: {holds} of {all}, and {ties} tied")
            }
        }
    }
}

/// A claim and what became of it.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The claim, in our words.
    pub claim: String,
    /// The measured values.
    pub measured: String,
    /// Whether we see it.
    pub finding: Finding,
}

/// The verdicts on `claims`; none on those whose panels were left out.
pub fn on<W: Workload>(claims: &[StatedClaim<W>], margin: f64, series: &[SeriesOutcome<W>]) -> Vec<Verdict> {
    let verdict = |claim: &StatedClaim<W>| {
        let cases = claim.rule.cases(margin, series);
        let text = |case: &Case| match case.outcome {
            CaseOutcome::Tie => format!("{} (tie)", case.measured),
            CaseOutcome::Fails | CaseOutcome::Holds => case.measured.clone(),
        };
        let measured: Vec<String> = cases.iter().map(text).collect();
        let (claim, finding) = (claim.text.clone(), Finding::of(&cases));
        (!cases.is_empty()).then(|| Verdict { claim, measured: measured.join("; "), finding })
    };
    claims.iter().filter_map(verdict).collect()
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

    #[test]
    fn cases_make_a_finding() {
        let finding = |outcomes: &[CaseOutcome]| {
            let case = |&outcome| Case { outcome, measured: String::new() };
            Finding::of(&outcomes.iter().map(case).collect::<Vec<_>>()).to_string()
        };
        use CaseOutcome::{Fails, Holds, Tie};
        assert_eq!(finding(&[Holds, Holds]), "seen");
        assert_eq!(finding(&[Fails, Tie]), "not seen");
        assert_eq!(finding(&[Tie, Tie]), "tie");
        assert_eq!(finding(&[Holds, Fails]), "in part: 1 of 2");
        assert_eq!(finding(&[Holds, Tie]), "in part: 1 of 2, and 1 tied");
    }
}
