//! A training run that is killed goes on as if nothing had happened.

use crate::support::{Folder, Running};
use fabswarm_view::RecordedRun;
use fabswarm_view::message::Topic;
use rustix::process::Signal;
use std::fs;

/// Every fault of the air, and agents that stop, forget and freeze, before the kill and after it.
const FAULTS: &str = "--epochs 100 --algorithm ledger --iid-loss 0.2 --burst-loss 0.2 --delay-rounds 3 \
    --duplication 0.3 --reordering 0.3 --bit-corruption 0.1 --replay 0.5 --wrong-key 0.5 \
    --radio-off 1@5+20,2@400+9 --frozen 0@6+5,1@420+9 --crashes '2@8+6 forgets,0@410+5'";

fn killed_and_resumed_equals_uninterrupted(goes_through: &str) {
    let folder = Folder::new();
    // Short epochs with a row after each, and a checkpoint after three.
    let train = |out: &str| {
        let small = "--data sample --agents 3 --batch 8 --model-width 12 --checkpoint-every 3";
        format!("train --device cpu --out {out} {small} --evaluate-every 1 {goes_through}")
    };
    folder.succeeds(&train("whole"));
    let mut run = Running::start(folder.fabswarm(&train("killed")));
    // Far enough for rows that come after a checkpoint.
    run.wait_for("a checkpoint", |_| {
        folder.join("killed/checkpoint.safetensors").is_file() && folder.last_round("killed") >= 9
    });
    run.signal(Signal::KILL);
    assert_eq!(run.ends().code, None, "the run ended before it was killed");

    folder.succeeds("train --device cpu --resume killed");
    for name in ["model.safetensors", "metrics.csv", "scenario.toml", "weights.svg"] {
        let read = |run: &str| fs::read(folder.join(run).join(name)).unwrap();
        assert!(read("whole") == read("killed"), "{name} differs");
    }
    // Time goes on where it stood, and no row is there twice.
    let (metrics, times) = (folder.read("killed/metrics.csv"), folder.read("killed/times.csv"));
    let rounds = |table: &str| -> Vec<String> {
        table.lines().skip(1).map(|row| row.split(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(rounds(&metrics), rounds(&times));
    let seconds: Vec<f64> =
        times.lines().skip(1).map(|row| row.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert!(seconds.is_sorted_by(|before, after| before < after), "{times}");

    // So does the log: every row of the table is in it once, and it has one beginning and one end.
    let log = RecordedRun::read(&folder.join("killed")).unwrap();
    assert!(log.is_complete);
    let rounds_of = |topic| log.about(topic).map(|message| message.round.to_string()).collect::<Vec<_>>();
    assert_eq!(rounds_of(Topic::Evaluation), rounds(&metrics));
    assert_eq!((log.about(Topic::Run).count(), log.about(Topic::End).count()), (1, 1));
    assert!(log.about(Topic::Swarm).is_sorted_by(|before, after| before.round < after.round));
}

#[test]
fn a_killed_run_resumes_to_the_same_weights() {
    killed_and_resumed_equals_uninterrupted("--epochs 80");
}

#[test]
fn a_killed_run_under_faults_resumes_to_the_same_weights() {
    killed_and_resumed_equals_uninterrupted(FAULTS);
}
