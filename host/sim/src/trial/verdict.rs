//! Why a run did not succeed, in words.

use super::TrialOutcome;
use crate::record::StoppedBecause;
use crate::scenario::{AlgorithmKind, LOST_WITH_FAB, PenaltyKind, Scenario, ScenarioCommand};
use crate::swarm::{LOWER_THE_STEPS, RAISE_LAMBDA, SwarmError, divergence_remedy};
use fabswarm_diagnostic::Diagnostic;

impl TrialOutcome {
    /// Why the run of `scenario` did not reach its goal, and what to try; `None` where it did, or was interrupted.
    pub fn complaint(&self, scenario: &Scenario) -> Option<String> {
        if self.is_success {
            return None;
        }
        let summary = &self.summary;
        let (error, last) = (summary.error.kind.title(), summary.error.last);
        let is_symmetric = scenario.algorithm.penalty == PenaltyKind::Symmetric;
        let remedy = match &self.failure {
            // Steps that are too large break x and y no later than z.
            Some(SwarmError::Diverged(error)) if is_symmetric && error.variable == "z" => {
                format!("g - f/lambda has no minimum for z to follow: {RAISE_LAMBDA}")
            }
            _ => divergence_remedy(scenario, ScenarioCommand::Run),
        };
        let failure =
            self.failure.as_ref().map(|failure| failure.to_string().replace(LOWER_THE_STEPS, &remedy));
        match summary.common.stopped_because {
            StoppedBecause::Converged
            | StoppedBecause::SmallGradient
            | StoppedBecause::Interrupted
            | StoppedBecause::BoardsFailed
            | StoppedBecause::BooksBroken => failure,
            StoppedBecause::Diverged => {
                let text = failure.unwrap_or_else(|| {
                    let what = format!(
                        "the swarm diverged: the {error} grew from {:.1e} to {last:.1e} in {} rounds",
                        self.first_error, summary.common.rounds
                    );
                    Diagnostic::new(what, remedy).to_string()
                });
                let takes_damaged = !scenario.frames.sealed && scenario.faults.bit_corruption > 0.0;
                let sealed =
                    "\nhelp: damaged frames were taken for genuine; set frames.sealed to true to refuse them";
                Some(text + if takes_damaged { sealed } else { "" })
            }
            StoppedBecause::MaxRounds => {
                let is_fab = scenario.algorithm.kind == AlgorithmKind::Fab;
                let remedy = if is_fab && scenario.faults.lose_frames() {
                    format!("take `--algorithm ledger`: {LOST_WITH_FAB}")
                } else if last < self.first_error {
                    "raise swarm.rounds if the plot shows that it still falls, or run all rounds without a goal by `--error-below 0`".to_owned()
                } else {
                    remedy
                };
                let what = format!(
                    "the {error} is {last:.3e} after all {} rounds, and the scenario asks for less than {}",
                    summary.common.rounds, scenario.stop.error_below
                );
                Some(Diagnostic::new(what, remedy).to_string())
            }
        }
    }
}
