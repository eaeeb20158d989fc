//! Claims on experiments, and whether we see them. A claim and its rule stand in the file of the experiment, written before it is run.

use crate::case::{Case, CaseOutcome};
use crate::experiment::StatedClaim;
use crate::table::Table;
use crate::workload::{SeriesOutcome, Workload};

/// The verdicts on `claims`; none on those whose panels were left out.
pub(crate) fn on<W: Workload>(
    claims: &[StatedClaim<W>],
    margin: f64,
    seeds: u64,
    series: &[SeriesOutcome<W>],
) -> Table {
    let mut table = Table::new(&["claim", "what we measured", "seen?", "seeds"]);
    for claim in claims {
        let cases = claim.rule.cases(margin, series);
        let text = |case: &Case| match case.outcome {
            CaseOutcome::Tie => format!("{} (tie)", case.measured),
            CaseOutcome::Fails | CaseOutcome::Holds => case.measured.clone(),
        };
        let measured: Vec<String> = cases.iter().map(text).collect();
        if !cases.is_empty() {
            let row = [claim.text.clone(), measured.join("; "), finding(&cases), seeds.to_string()];
            table.rows.push(row.to_vec());
        }
    }
    table
}

/// Whether a claim was seen, from what became of it in each case.
pub(crate) fn finding(cases: &[Case]) -> String {
    let count = |outcome| cases.iter().filter(|case| case.outcome == outcome).count();
    let (ties, all) = (count(CaseOutcome::Tie), cases.len());
    match count(CaseOutcome::Holds) {
        0 if ties == all => "tie".to_owned(),
        0 => "not seen".to_owned(),
        holds if holds == all => "seen".to_owned(),
        holds if ties == 0 => format!("in part: {holds} of {all}"),
        holds => format!("in part: {holds} of {all}, and {ties} tied"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_make_a_finding() {
        use CaseOutcome::{Fails, Holds, Tie};
        for (outcomes, expected) in [
            ([Holds, Holds], "seen"),
            ([Fails, Tie], "not seen"),
            ([Tie, Tie], "tie"),
            ([Holds, Fails], "in part: 1 of 2"),
            ([Holds, Tie], "in part: 1 of 2, and 1 tied"),
        ] {
            assert_eq!(finding(&outcomes.map(|outcome| Case { outcome, measured: String::new() })), expected);
        }
    }
}
