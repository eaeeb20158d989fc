//! Claims on experiments, and whether we see them. A claim and its rule stand in the file of the experiment, written before it is run.

use std::fmt;

use crate::case::{Case, CaseOutcome};
use crate::experiment::StatedClaim;
use crate::workload::{SeriesOutcome, Workload};

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

#[cfg(test)]
mod tests {
    use super::*;

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
