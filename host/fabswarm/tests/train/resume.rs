//! A training run that is killed goes on as if nothing had happened.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fabswarm_view::RecordedRun;
use fabswarm_view::message::Topic;

/// What a run goes through, in flags.
const PLAIN: &[&str] = &["--epochs", "200"];
/// Every fault of the air, and agents that stop, forget and freeze, before the kill and after it.
#[rustfmt::skip]
const FAULTY: &[&str] = &[
    "--epochs", "100", "--algorithm", "ledger",
    "--iid-loss", "0.2", "--burst-loss", "0.2", "--delay-rounds", "3", "--duplication", "0.3", "--reordering", "0.3",
    "--bit-corruption", "0.1", "--replay", "0.5", "--wrong-key", "0.5",
    "--radio-off", "1@5+20,2@400+9", "--frozen", "0@6+5,1@420+9", "--crashes", "2@8+6 forgets,0@410+5",
];

/// Short epochs with a row after each, and a checkpoint after three.
fn train(folder: &Path, goes_through: Option<&[&str]>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.args(["train", "--device", "cpu"]).stdout(Stdio::null()).stderr(Stdio::null());
    match goes_through {
        None => command.arg("--resume").arg(folder),
        Some(flags) => command
            .arg("--out")
            .arg(folder)
            .args(["--data", "sample", "--agents", "3", "--batch", "8", "--model-width", "12"])
            .args(["--checkpoint-every", "3", "--evaluate-every", "1"])
            .args(flags),
    };
    command
}

fn killed_and_resumed_equals_uninterrupted(goes_through: &[&str]) {
    let parent = tempfile::tempdir().unwrap();
    let (whole, killed) = (parent.path().join("whole"), parent.path().join("killed"));
    assert!(train(&whole, Some(goes_through)).status().unwrap().success());

    let mut run = train(&killed, Some(goes_through)).spawn().unwrap();
    let checkpoint = killed.join("checkpoint.safetensors");
    let rows = || {
        std::fs::read_to_string(killed.join("metrics.csv.part")).map_or(0, |metrics| metrics.lines().count())
    };
    let patience = Instant::now() + Duration::from_secs(120);
    // Far enough for rows that come after a checkpoint.
    while !checkpoint.is_file() || rows() < 9 {
        assert!(Instant::now() < patience, "no checkpoint came");
        std::thread::sleep(Duration::from_millis(5));
    }
    // On Unix this is SIGKILL: the run writes nothing more.
    run.kill().unwrap();
    assert!(!run.wait().unwrap().success(), "the run ended before it was killed");

    assert!(train(&killed, None).status().unwrap().success());
    let read = |folder: &Path, name: &str| std::fs::read(folder.join(name)).unwrap();
    for name in ["model.safetensors", "metrics.csv", "scenario.toml", "weights.svg"] {
        assert!(read(&whole, name) == read(&killed, name), "{name} differs");
    }
    // Time goes on where it stood, and no row is there twice.
    let table = |name| String::from_utf8(read(&killed, name)).unwrap();
    let (metrics, times) = (table("metrics.csv"), table("times.csv"));
    let rounds = |table: &str| -> Vec<String> {
        table.lines().skip(1).map(|row| row.split(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(rounds(&metrics), rounds(&times));
    let seconds: Vec<f64> =
        times.lines().skip(1).map(|row| row.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert!(seconds.is_sorted_by(|before, after| before < after), "{times}");

    // So does the log: every row of the table is in it once, and it has one beginning and one end.
    let log = RecordedRun::read(&killed).unwrap();
    assert!(log.is_complete);
    let rounds_of = |topic| log.about(topic).map(|message| message.round.to_string()).collect::<Vec<_>>();
    assert_eq!(rounds_of(Topic::Evaluation), rounds(&metrics));
    assert_eq!((log.about(Topic::Run).count(), log.about(Topic::End).count()), (1, 1));
    assert!(log.about(Topic::Swarm).is_sorted_by(|before, after| before.round < after.round));
}

#[test]
fn a_killed_run_resumes_to_the_same_weights() {
    killed_and_resumed_equals_uninterrupted(PLAIN);
}

#[test]
fn a_killed_run_under_faults_resumes_to_the_same_weights() {
    killed_and_resumed_equals_uninterrupted(FAULTY);
}
