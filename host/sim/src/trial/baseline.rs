//! Makes the swarm of a scenario whose method is one that FAB is compared with.

use std::rc::Rc;

use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::graph::Weights;
use fabswarm_shared::problem::Penalty;

use super::BuildError;
use crate::air::Air;
use crate::method::{Hypergradient, InnerLoop, PenaltyGradient, RuleKind, SobaDirection};
use crate::scenario::{AlgorithmKind, ModeKind, PrecisionKind, Scenario};
use crate::swarm::{Baseline, MethodSwarm, RoundMethod};
use crate::task::{OwnProblem, Task};

/// The swarm of `scenario` with the method that `make` makes for its task, unless a key asks for what these methods cannot do.
pub(super) fn swarm_with(
    scenario: &Scenario,
    own: Option<&OwnProblem>,
    make: impl FnOnce(&Rc<Task<f64>>) -> Result<Box<dyn RoundMethod>, BuildError>,
) -> Result<MethodSwarm, BuildError> {
    let kind = scenario.algorithm.kind;
    let refuse = |key: &str, remedy: &str| {
        Err(Diagnostic::new(format!("algorithm.kind = \"{kind}\" does not go with {key}"), remedy))
    };
    if scenario.swarm.precision != PrecisionKind::F64 {
        return refuse("swarm.precision = \"f32\"", "leave it out: these methods compute in f64");
    }
    if scenario.swarm.mode == ModeKind::FreeRunning {
        return refuse("swarm.mode = \"free-running\"", "set algorithm.kind to \"ledger\"");
    }
    if !scenario.faults.crashes.0.is_empty() || !scenario.faults.frozen.0.is_empty() {
        return refuse(
            "faults.crashes and faults.frozen",
            "switch radios off with faults.radio_off, or set algorithm.kind to \"ledger\" or \"fab\"",
        );
    }
    let task = Rc::new(Task::<f64>::load_with(scenario, own)?);
    let method = make(&task)?;
    Ok(MethodSwarm::new(task, Air::new(scenario)?, method, 0, scenario.algorithm.eta_x))
}

/// The method of `scenario` on its task, where it is one of fabswarm's own.
pub(super) fn make(
    scenario: &Scenario,
    task: &Rc<Task<f64>>,
    weights: Weights,
    penalty: Penalty<f64>,
) -> Result<Box<dyn RoundMethod>, BuildError> {
    let (algorithm, agents, shape) = (&scenario.algorithm, scenario.swarm.agents, task.shape());
    let row = task.start();
    let steps = |[x, y, z]: [f64; 3]| [vec![x; shape.x], vec![y; shape.y], vec![z; shape.y]].concat();
    let of_fab = [algorithm.eta_x, algorithm.eta_y, algorithm.eta_z];
    // FAB's gradients of f are multiplied by `scale`, those of g by λ·`scale`. Other methods have them as they are.
    let scale = penalty.scale();
    let bound = penalty.lambda * scale;
    let plain = [scale * algorithm.eta_x, bound * algorithm.eta_y, bound * algorithm.eta_z];
    let on_penalty = |rule| -> Box<dyn RoundMethod> {
        let oracle = PenaltyGradient::new(Rc::clone(task), penalty);
        Box::new(Baseline::new(rule, oracle, weights, 1, steps(of_fab), &row, agents))
    };
    let double_loop = |rule| -> Box<dyn RoundMethod> {
        let inner = InnerLoop { rule, momentum: 0.0, rounds: algorithm.inner_rounds, step: plain[1] };
        let oracle = Hypergradient::new(Rc::clone(task), agents, inner);
        let (steps, row) = (vec![plain[0]; shape.x], &row[..shape.x]);
        let rounds = 1 + algorithm.inner_rounds as usize;
        Box::new(Baseline::new(rule, oracle, weights, rounds, steps, row, agents))
    };
    Ok(match algorithm.kind {
        AlgorithmKind::SubgradientPush => on_penalty(RuleKind::SubgradientPush),
        AlgorithmKind::PushSgd => on_penalty(RuleKind::PushSgd),
        AlgorithmKind::PushDiging => on_penalty(RuleKind::PushDiging),
        AlgorithmKind::PushSaga => on_penalty(RuleKind::PushSaga),
        AlgorithmKind::Soba => {
            let oracle = SobaDirection::new(Rc::clone(task), agents);
            Box::new(Baseline::new(RuleKind::PushPull, oracle, weights, 1, steps(plain), &row, agents))
        }
        AlgorithmKind::DoubleLoopPushPull => double_loop(RuleKind::PushPull),
        AlgorithmKind::DoubleLoopPushSgd => double_loop(RuleKind::PushSgd),
        AlgorithmKind::DoubleLoopPushDiging => double_loop(RuleKind::PushDiging),
        // Those of FAB are no methods on an oracle.
        AlgorithmKind::Ledger | AlgorithmKind::Fab | AlgorithmKind::Own => {
            return Err(Diagnostic::new(
                "algorithm.kind = \"own\" is a method that a program in Python brings, and this one brings none",
                "write one as docs/python.md shows, or give --algorithm another word",
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Crash, Crashes, Flag, ScenarioCommand, resolve};
    use crate::swarm::{Metrics, Swarm};
    use crate::trial;

    fn scenario(flags: &[(&str, &str)]) -> Scenario {
        let flag = |(name, value): &(&str, &str)| {
            let key = ScenarioCommand::Run.keys().find(|key| key.flag == *name).unwrap();
            Flag::parse(key, value).unwrap()
        };
        resolve(None, &flags.iter().map(flag).collect::<Vec<_>>()).unwrap().scenario
    }

    fn after(rounds: u32, scenario: &Scenario) -> (Box<dyn Swarm>, Metrics) {
        let mut swarm = trial::build(scenario).unwrap();
        (0..rounds).for_each(|_| swarm.step().unwrap());
        let metrics = swarm.metrics();
        (swarm, metrics)
    }

    #[test]
    fn every_method_approaches_the_solution_of_policy_evaluation() {
        for (kind, rounds, eta_y, expected) in [
            ("subgradient-push", 4000, "0.06", 0.5),
            ("push-sgd", 4000, "0.06", 0.01),
            ("push-diging", 4000, "0.06", 0.01),
            ("push-saga", 4000, "0.06", 0.01),
            ("soba", 4000, "0.06", 1e-6),
            ("double-loop-push-pull", 21_000, "0.3", 0.1),
            ("double-loop-push-sgd", 21_000, "0.3", 0.5),
            ("double-loop-push-diging", 21_000, "0.3", 0.1),
        ] {
            // Agents of a double loop that disagree see more curvature, which keeps their steps small.
            let flags = [("algorithm", kind), ("topology", "complete"), ("agents", "3"), ("eta-y", eta_y)];
            let (swarm, metrics) = after(rounds, &scenario(&flags));
            assert!(metrics.error < expected, "{kind}: {}", metrics.error);
            assert!(metrics.tracking_defect < 1e-9, "{kind}: {}", metrics.tracking_defect);
            assert_eq!(swarm.counts().sent, 3 * u64::from(rounds), "{kind}");
        }
    }

    // x of hyper-cleaning never travels, and tau of hyper-tuning stays at or above zero.
    #[test]
    fn every_method_runs_every_problem_over_a_lossy_air() {
        let kinds = AlgorithmKind::WORDS[2..].iter().filter(|kind| **kind != "own");
        for &kind in kinds {
            for problem in ["hyper-tuning", "hyper-cleaning", "sensor-trust"] {
                let steps = [("eta-x", "0.001"), ("eta-y", "0.001"), ("eta-z", "0.001")];
                let flags =
                    [&[("algorithm", kind), ("problem", problem), ("iid-loss", "0.1")], &steps[..]].concat();
                let (swarm, metrics) = after(63, &scenario(&flags));
                assert!(metrics.upper_value.is_finite() && metrics.error.is_finite(), "{kind} {problem}");
                assert!(swarm.counts().lost > 0);
                let [x, ..] = swarm.answer().variables();
                assert!(problem != "hyper-tuning" || x.words.iter().all(|tau| *tau >= 0.0), "{kind}");
            }
        }
    }

    #[test]
    fn what_a_method_cannot_do_is_refused() {
        let scenario =
            |flags: &[(&'static str, &'static str)]| scenario(&[&[("algorithm", "soba")], flags].concat());
        let refusal = |scenario: &Scenario| trial::build(scenario).map(|_| ()).unwrap_err().to_string();
        assert!(refusal(&scenario(&[("algorithm", "own")])).contains("docs/python.md"));
        assert!(refusal(&scenario(&[("precision", "f32")])).contains("help: leave it out"));
        assert!(refusal(&scenario(&[("mode", "free-running")])).contains("does not go with swarm.mode"));
        let crash = Crash { agent: 1, round: 5, down_rounds: 5, keeps_memory: true };
        let mut crashing = scenario(&[]);
        crashing.faults.crashes = Crashes(vec![crash]);
        assert!(refusal(&crashing).contains("faults.radio_off"));
    }
}
