use super::*;
use crate::choices::PrecisionKind;

fn flag(path: &str, text: &str) -> Flag {
    Flag::parse(template::key(path).unwrap(), text).unwrap()
}

#[test]
fn what_is_printed_reads_back_as_the_same_scenario() {
    let trials = ProblemKind::WORDS.iter();
    let trials = trials.map(|kind| (ScenarioCommand::Run, vec![flag("problem.kind", kind)]));
    for (command, flags) in trials.chain([(ScenarioCommand::Train, Vec::new())]) {
        let resolved = resolve_for(command, None, &flags).unwrap();
        let (file, text) = (Path::new("printed.toml"), resolved.to_toml());
        let again = resolve_text_for(command, Some((file, &text)), &[]).unwrap();
        assert_eq!(again.scenario, resolved.scenario);
        assert_eq!(again.to_toml(), text);
        assert_eq!(read(file, &text).unwrap().len(), command.keys().count());
        assert_eq!(resolved.values().count(), command.keys().count());
    }
}

#[test]
fn a_flag_is_checked_like_a_key_of_a_file() {
    let refused =
        |path: &str, text: &str| Flag::parse(template::key(path).unwrap(), text).unwrap_err().to_string();
    assert_eq!(
        refused("seed", "1.5"),
        "--seed: seed = 1.5 has the wrong type\nhelp: give a whole number instead of a number with a decimal point"
    );
    assert_eq!(
        refused("algorithm.eta_x", "fast"),
        "--eta-x: algorithm.eta_x = \"fast\" has the wrong type\nhelp: give a number instead of text"
    );
    assert_eq!(
        refused("seed", "9223372036854775808"),
        "--seed: seed = 9223372036854775808 is out of range\nhelp: give a whole number from 0 to 9223372036854775807"
    );
    assert!(refused("frames.sealed", "yes").ends_with("help: give true or false instead of text"));
    assert!(refused("network.topology", "rign").ends_with("did you mean `ring`?"));
    assert!(refused("swarm.agents", "0").contains("is out of range"));
    let named = |name, value| Flag::named(ScenarioCommand::Run, name, value);
    assert_eq!(
        named("agnets", Value::from(3)).unwrap_err().to_string(),
        "agnets: there is no such argument\nhelp: did you mean `agents`?"
    );
    assert_eq!(
        named("lr", Value::from(3)).unwrap_err().to_string(),
        "lr: there is no such argument\nhelp: did you mean `eta_x`, `eta_y` or `eta_z`?"
    );
    assert_eq!(named("lam", Value::from(3.0)).unwrap().key.path, "algorithm.lambda");
    assert!(named("agents", Value::from(0)).unwrap_err().to_string().contains("is out of range"));
    assert_eq!(flag("algorithm.eta_x", "3").value.as_float(), Some(3.0));
}

#[test]
fn training_over_a_lossy_air_uses_the_ledger_unless_told_otherwise() {
    let resolved = |command, flags: &[(&str, &str)]| {
        let flags: Vec<Flag> = flags.iter().map(|(path, text)| flag(path, text)).collect();
        let resolved = resolve_for(command, None, &flags).unwrap();
        (resolved.scenario.algorithm.kind, resolved.notes.join("\n"))
    };
    let (loss, fab) = (("faults.iid_loss", "0.3"), ("algorithm.kind", "fab"));
    let (kind, note) = resolved(ScenarioCommand::Train, &[loss]);
    assert_eq!(kind, AlgorithmKind::Ledger);
    assert!(note.contains("`--algorithm fab` overrides"), "{note}");
    assert_eq!(resolved(ScenarioCommand::Train, &[]), (AlgorithmKind::Fab, String::new()));
    for command in ScenarioCommand::ALL {
        let (kind, note) = resolved(command, &[loss, fab]);
        assert_eq!(kind, AlgorithmKind::Fab);
        assert!(note.contains(LOST_WITH_FAB), "{note}");
    }
    let push_sum = [loss, ("training.method", "single-level-all"), ("training.rule", "push-sgd")];
    assert_eq!(resolved(ScenarioCommand::Train, &push_sum), (AlgorithmKind::Fab, String::new()));
}

#[test]
fn a_problem_brings_its_own_steps_unless_the_user_sets_them() {
    let eta_x = |flags: &[Flag]| resolve(None, flags).unwrap().scenario.algorithm.eta_x;
    let problem = flag("problem.kind", "hyper-cleaning");
    assert_ne!(eta_x(std::slice::from_ref(&problem)), Scenario::default().algorithm.eta_x);
    assert_eq!(eta_x(&[problem, flag("algorithm.eta_x", "0.125")]), 0.125);
}

#[test]
fn a_baseline_has_the_defaults_of_fab_in_double_precision_and_belongs_to_run() {
    let kind = |word| [flag("algorithm.kind", word)];
    let fab = resolve(None, &kind("fab")).unwrap().scenario.algorithm;
    let baseline = resolve(None, &kind("soba")).unwrap().scenario;
    assert_eq!((baseline.algorithm.eta_x, baseline.algorithm.momentum), (fab.eta_x, 0.0));
    assert_eq!(baseline.swarm.precision, PrecisionKind::F64);
    let refused = resolve_for(ScenarioCommand::Train, None, &kind("push-sgd")).unwrap_err().to_string();
    assert!(refused.contains("is a method of `fabswarm run`\nhelp: "), "{refused}");
}
