use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::checkpoint::Checkpoint;
use super::*;
use crate::device::cpu::Cpu;
use fabswarm_data::{Cache, SAMPLE};
use fabswarm_sim::record::RunFolder;
use fabswarm_sim::scenario::{Flag, ResolvedScenario, ScenarioCommand, keys, resolve_for};
use toml_edit::Value;

const CHECKPOINT: &str = "checkpoint.safetensors";

#[derive(Default)]
struct EvaluationLog(Vec<Evaluation>);

impl TrainingObserver for EvaluationLog {
    fn round(&mut self, _: TrainingRound<'_>) {}
    fn evaluated(&mut self, evaluation: &Evaluation) -> Result<(), record::Error> {
        self.0.push(*evaluation);
        Ok(())
    }
}

/// A small run on the bundled sample, with some keys changed.
fn scenario(changes: &[(&str, Value)]) -> ResolvedScenario {
    let small: [(&str, Value); 5] = [
        ("training.data", SAMPLE.into()),
        ("training.model_width", 12.into()),
        ("training.batch", 8.into()),
        ("training.epochs", 4.into()),
        ("swarm.agents", 4.into()),
    ];
    let flag = |(path, value): &(&str, Value)| Flag {
        key: keys().iter().find(|key| key.path == *path).unwrap(),
        value: value.clone(),
    };
    let flags: Vec<Flag> = small.iter().chain(changes).map(flag).collect();
    resolve_for(ScenarioCommand::Train, None, &flags).unwrap()
}

fn train(
    resolved: &ResolvedScenario,
    folder: &Path,
    resumes: bool,
) -> Result<(TrainingOutcome, Vec<Evaluation>), Error> {
    let prepared = TrainingSetup::new(&Cache::at(folder), &resolved.scenario)?;
    train_prepared(&prepared, resolved, folder, resumes)
}

fn train_prepared(
    prepared: &TrainingSetup,
    resolved: &ResolvedScenario,
    folder: &Path,
    resumes: bool,
) -> Result<(TrainingOutcome, Vec<Evaluation>), Error> {
    let mut observer = EvaluationLog::default();
    let mut checkpoint = resumes.then(|| Checkpoint::open(folder, resolved)).transpose()?;
    let planned = TrainingPlan::new(Cpu::<f32>::new(), prepared, resolved)?;
    let mut trainer = planned.start(checkpoint.as_mut())?;
    let run = RunFolder::again(folder)?;
    run.write(report::SCENARIO_FILE, resolved.to_repeatable_toml().as_bytes())?;
    let outcome = trainer.run(Some(&run), &mut observer, &AtomicBool::new(false))?;
    Ok((outcome, observer.0))
}

/// Everything that can go wrong on the air, one by one and together.
fn faults() -> Vec<(&'static str, Vec<(&'static str, Value)>)> {
    let all: Vec<(&str, Value)> = vec![
        ("faults.iid_loss", 0.2.into()),
        ("faults.burst_loss", 0.3.into()),
        ("faults.delay_rounds", 3.into()),
        ("faults.duplication", 0.3.into()),
        ("faults.reordering", 0.3.into()),
        ("faults.bit_corruption", 0.2.into()),
        ("intruder.replay", 0.5.into()),
        ("intruder.wrong_key", 0.5.into()),
        ("faults.radio_off", "1@5+20".into()),
        ("faults.frozen", "3@6+5".into()),
        ("faults.crashes", "2@8+6".into()),
    ];
    let forgets = ("faults.crashes", Value::from("2@8+6 forgets"));
    let mut each: Vec<_> = all.iter().map(|fault| (fault.0, vec![fault.clone()])).collect();
    each.push(("memory lost", vec![forgets]));
    each.push(("all at once", all));
    each
}

fn with_ledger(faults: Vec<(&'static str, Value)>) -> Vec<(&'static str, Value)> {
    [vec![("algorithm.kind", "ledger".into())], faults].concat()
}

/// Agents that adapt first, with a symmetric penalty that has minima.
fn sharper(more: Vec<(&'static str, Value)>) -> Vec<(&'static str, Value)> {
    let own = vec![
        ("algorithm.order", "adapt-first".into()),
        ("algorithm.penalty", "symmetric".into()),
        ("algorithm.lambda", 8.0.into()),
        ("algorithm.normalise_by_lambda", true.into()),
    ];
    [own, more].concat()
}

#[test]
fn a_resumed_run_ends_in_the_same_bits() {
    let lossy = with_ledger(vec![("faults.iid_loss", 0.3.into())]);
    let worst = with_ledger(faults().pop().unwrap().1);
    for (method, changes) in [
        ("cleaning", vec![]),
        ("cleaning", lossy),
        ("tuning", worst.clone()),
        ("cleaning", worst.clone()),
        ("cleaning", sharper(worst)),
        ("single-level-all", vec![]),
        ("single-level-all", vec![("training.rule", "push-diging".into()), ("faults.iid_loss", 0.01.into())]),
        ("single-level-noisy", vec![("training.rule", "subgradient-push".into())]),
    ] {
        let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let of = |epochs: i64| {
            let own = [
                ("training.method", method.into()),
                ("algorithm.eta_x", 0.01.into()),
                ("training.epochs", epochs.into()),
            ];
            scenario(&[&own[..], &changes].concat())
        };
        let (expected, _) = train(&of(4), whole.path(), false).unwrap();
        train(&of(1), parts.path(), false).unwrap();
        let (resumed, _) = train(&of(4), parts.path(), true).unwrap();
        assert_eq!(resumed.mean, expected.mean, "{method} {changes:?}");
        assert_eq!(resumed.weights, expected.weights, "{method} {changes:?}");
        assert_eq!(resumed.evaluation.frames, expected.evaluation.frames, "{method} {changes:?}");
    }
}

#[test]
fn every_fault_of_the_air_leaves_a_swarm_that_learns_with_its_ledger_intact() {
    for (name, faults) in faults() {
        let folder = tempfile::tempdir().unwrap();
        let changes = [with_ledger(faults), vec![("training.epochs", 15.into())]].concat();
        let (outcome, evaluations) = train(&scenario(&changes), folder.path(), false).unwrap();
        let (first, last) = (&evaluations[0], &outcome.evaluation);
        assert!(last.test.loss < first.test.loss, "{name}: {evaluations:?}");
        assert!(outcome.tracking_defect < 1e-5, "{name}: {}", outcome.tracking_defect);
    }
}

#[test]
fn every_topology_carries_both_forms_of_push() {
    let trace = tempfile::NamedTempFile::new().unwrap();
    // In each round one of four agents hears the one before it, and no other link exists.
    std::fs::write(
        trace.path(),
        r#"{"n": 4, "row_mask_hex_digits": 1, "graphs": ["9248", "1348", "1268", "124c"]}"#,
    )
    .unwrap();
    let path = Value::from(trace.path().to_str().unwrap());
    for topology in ["paper", "ring", "reversed-ring", "erdos-renyi", "complete", "recorded", "motion"] {
        for kind in ["fab", "ledger"] {
            let folder = tempfile::tempdir().unwrap();
            let changes = [
                ("network.topology", topology.into()),
                ("network.graphs", path.clone()),
                ("algorithm.kind", kind.into()),
                ("training.epochs", 6.into()),
            ];
            let (outcome, evaluations) = train(&scenario(&changes), folder.path(), false).unwrap();
            let (first, last) = (&evaluations[0], &outcome.evaluation);
            assert!(last.test.loss < first.test.loss, "{topology}, {kind}: {evaluations:?}");
            assert!(outcome.tracking_defect < 1e-5, "{topology}, {kind}: {}", outcome.tracking_defect);
        }
    }
}

#[test]
fn a_checkpoint_with_another_byte_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    train(&scenario(&[]), folder.path(), false).unwrap();
    let path = folder.path().join(CHECKPOINT);
    let bytes = std::fs::read(&path).unwrap();
    for at in [bytes.len() / 2, bytes.len() - 5, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        let refused = train(&scenario(&[]), folder.path(), true).unwrap_err().to_string();
        assert!(refused.contains("its checksum differs"), "byte {at}: {refused}");
    }
}

#[test]
fn symmetric_penalty_without_a_minimum_ends_the_run_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let resolved = scenario(&[
        ("algorithm.penalty", "symmetric".into()),
        ("algorithm.lambda", 0.1.into()),
        ("algorithm.eta_z", 0.3.into()),
        ("training.epochs", 30.into()),
    ]);
    let chance = TrainingSetup::new(&Cache::at(folder.path()), &resolved.scenario).unwrap().chance_baseline();
    let (outcome, evaluations) = train(&resolved, folder.path(), false).unwrap();
    assert_eq!(outcome.stopped_because, StoppedBecause::Diverged);
    assert!(!chance.is_diverged(&outcome.evaluation.test) && evaluations.len() < 30, "{evaluations:?}");
    let complaint = outcome.complaint(&resolved.scenario, chance, None).unwrap();
    assert!(complaint.contains("--penalty one-sided") && complaint.contains("lambda = 0.1"), "{complaint}");
}

#[test]
fn non_finite_state_never_replaces_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody looks at the loss before the end.
    let blind = scenario(&[("training.evaluate_every", 0.into()), ("training.checkpoint_every", 1.into())]);
    train(&blind, folder.path(), false).unwrap();
    let path = folder.path().join(CHECKPOINT);
    let kept = std::fs::read(&path).unwrap();
    let mut prepared = TrainingSetup::new(&Cache::at(folder.path()), &blind.scenario).unwrap();
    prepared.start[0] = f32::NAN;
    let (outcome, evaluations) = train_prepared(&prepared, &blind, folder.path(), false).unwrap();
    assert_eq!(outcome.stopped_because, StoppedBecause::Diverged);
    assert!(evaluations.is_empty() && outcome.evaluation.round > 0);
    assert!(std::fs::read(&path).unwrap() == kept);
}

#[test]
fn every_rule_of_one_level_learns_and_sends_what_it_needs() {
    let mut sent = Vec::new();
    for rule in ["push-pull", "push-sgd", "subgradient-push", "push-diging", "push-saga", "push-asgd"] {
        let folder = tempfile::tempdir().unwrap();
        let changes = [
            ("training.method", "single-level-clean".into()),
            ("training.rule", rule.into()),
            ("training.epochs", 20.into()),
            ("algorithm.momentum", if rule == "push-asgd" { 0.2.into() } else { 0.0.into() }),
        ];
        let (outcome, evaluations) = train(&scenario(&changes), folder.path(), false).unwrap();
        let (first, last) = (&evaluations[0].test, &outcome.evaluation.test);
        assert!(last.loss < first.loss - 0.1, "{rule}: {first:?} to {last:?}");
        // Each of 4 agents sends a frame in every round.
        sent.push(outcome.evaluation.sent_bytes / (u64::from(outcome.evaluation.round) * 4 * 4));
    }
    let words = sent[0] / 2;
    assert_eq!(sent, [2 * words, words + 1, words + 1, 2 * words + 1, 2 * words + 1, 2 * words + 1]);
}

#[test]
fn rules_with_push_sum_weights_take_neither_ledger_nor_momentum() {
    let folder = tempfile::tempdir().unwrap();
    let base = [("training.method", "single-level-all".into()), ("training.rule", "push-sgd".into())];
    for (change, remedy) in [
        (("algorithm.kind", "ledger".into()), "set algorithm.kind to \"fab\""),
        (("algorithm.momentum", 0.5.into()), "set algorithm.momentum to 0"),
    ] {
        let refused = train(&scenario(&[&base[..], &[change]].concat()), folder.path(), false).unwrap_err();
        assert!(refused.to_string().contains(remedy), "{refused}");
    }
}
