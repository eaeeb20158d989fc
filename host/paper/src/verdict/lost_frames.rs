//! The robustness table: our own claims, since the paper's links never fail.

use super::{Verdict, finding, panels, rounds_or_why};
use crate::method::MethodKind;
use crate::small::MethodOutcome;

pub(super) fn verdicts(series: &[MethodOutcome]) -> Vec<Verdict> {
    let cases: [(&str, &[MethodKind], bool); 2] = [
        (
            "The ledger, with and without momentum, and LT-ADMM on one and two levels reach 1 % at every loss",
            &[
                MethodKind::LedgerFab,
                MethodKind::LedgerFabMomentum,
                MethodKind::LtAdmm,
                MethodKind::LtAdmmFab,
                MethodKind::LtAdmmFabOneStep,
            ],
            true,
        ),
        (
            "Plain FAB, Push-Pull and Push-DIGing do not reach 1 % where frames are lost",
            &[MethodKind::Fab, MethodKind::PushPull, MethodKind::PushDiging],
            false,
        ),
    ];
    let verdict = |(claim, methods, reaches): (&str, &[MethodKind], bool)| {
        let chosen: Vec<&MethodOutcome> = series
            .iter()
            .filter(|one| {
                methods.contains(&one.series.work.method) && (reaches || one.series.work.setting.loss > 0.0)
            })
            .collect();
        let holds: Vec<bool> = chosen
            .iter()
            .map(|one| if reaches { one.converged() == one.runs.len() } else { settles_above(one) })
            .collect();
        let mut measured = Vec::new();
        for panel in panels(series) {
            let here = chosen.iter().filter(|one| one.series.panel == panel);
            let list: Vec<String> =
                here.map(|one| format!("{} {}", one.series.label, rounds_or_why(one))).collect();
            if !list.is_empty() {
                measured.push(format!("{panel}: {}", list.join(", ")));
            }
        }
        let measured = format!("rounds to 1 %: {}", measured.join("; "));
        Verdict { claim: claim.into(), measured, finding: finding(&holds, "method and loss") }
    };
    cases.map(verdict).into()
}

/// Whether it ends above one per cent for every seed; it may pass below on its way.
fn settles_above(outcome: &MethodOutcome) -> bool {
    outcome.runs.iter().all(|run| run.settled_error() > 0.01)
}
