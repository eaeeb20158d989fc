//! Why a training run did not succeed, in words.

use super::{ChanceBaseline, TrainingOutcome};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::record::StoppedBecause;
use fabswarm_sim::scenario::{Scenario, ScenarioCommand};
use fabswarm_sim::swarm::divergence_remedy;

impl TrainingOutcome {
    /// Explains how the run of `scenario` diverged, with a remedy; `None` where it did not. It is compared with `chance`, and
    /// `checkpointed` is the round of its last checkpoint.
    pub fn complaint(
        &self,
        scenario: &Scenario,
        chance: ChanceBaseline,
        checkpointed: Option<u32>,
    ) -> Option<String> {
        if self.stopped_because != StoppedBecause::Diverged {
            return None;
        }
        let (round, test) = (self.evaluation.round, self.evaluation.test);
        let kept = match checkpointed {
            Some(checkpointed) => format!("the last checkpoint, of round {checkpointed}, is kept"),
            None => "no checkpoint was due before".to_owned(),
        };
        if self.evaluation.twin.is_some_and(|twin| chance.is_diverged(&twin)) {
            let lambda = scenario.algorithm.lambda;
            let what = format!(
                "z diverged until round {round}: with lambda = {lambda}, g - f/lambda seems to have no minimum; {kept}"
            );
            let remedy =
                "raise lambda with `--lambda`, or take `--penalty one-sided`; smaller steps may help too";
            return Some(Diagnostic::new(what, remedy).to_string());
        }
        let how = if test.loss.is_finite() {
            format!(
                "the test loss is {:.3e} at an accuracy of {:.3}, where a guess gives {:.1} and {:.3},",
                test.loss, test.accuracy, chance.loss, chance.accuracy
            )
        } else {
            "the loss is NaN".to_owned()
        };
        let what = format!("the swarm diverged: {how} after round {round}; {kept}");
        Some(Diagnostic::new(what, divergence_remedy(scenario, ScenarioCommand::Train)).to_string())
    }
}
