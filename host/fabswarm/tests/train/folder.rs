//! `fabswarm train` seen from outside: what it leaves behind, also when it cannot write it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A run of a moment, on the sample.
const SMALL: [&str; 10] =
    ["--data", "sample", "--model", "softmax", "--agents", "3", "--batch", "16", "--checkpoint-every", "1"];

fn train(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.current_dir(folder).stdin(Stdio::null());
    command.args(["train", "--device", "cpu"]).args(arguments);
    command
}

fn small(folder: &Path, arguments: &[&str]) -> Output {
    train(folder, &SMALL).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

fn summary(folder: &Path) -> serde_json::Value {
    serde_json::from_str(&read(folder, "summary.json")).unwrap()
}

/// A run that would go on for ever and has kept a checkpoint.
fn endless(folder: &Path, out: &str) -> Child {
    let mut endless = train(folder, &SMALL);
    endless.args(["--epochs", "1000000", "--out", out]).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = endless.spawn().unwrap();
    wait_for("a checkpoint", || folder.join(out).join("checkpoint.safetensors").exists());
    child
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_run_leaves_the_same_metrics_for_the_same_seed_and_a_summary_in_the_words_of_a_trial() {
    let folder = tempfile::tempdir().unwrap();
    let lossy = ["--algorithm", "ledger", "--iid-loss", "0.2", "--epochs", "3"];
    let output = small(folder.path(), &lossy);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = folder.path().join("runs/0001-train");
    let (events, files): (Vec<String>, Vec<String>) =
        names(&run).into_iter().partition(|name| name.starts_with("events.out.tfevents."));
    assert_eq!(events.len(), 1);
    assert_eq!(
        files,
        [
            "checkpoint.safetensors",
            "metrics.csv",
            "model.safetensors",
            "run.mcap",
            "scenario.toml",
            "summary.json",
            "times.csv",
            "weights.csv",
            "weights.parquet",
            "weights.svg"
        ]
    );
    assert!(small(folder.path(), &[&lossy[..], &["--out", "again"]].concat()).status.success());
    assert!(
        small(folder.path(), &[&lossy[..], &["--seed", "2", "--out", "other"]].concat()).status.success()
    );
    let metrics = |run: &str| read(&folder.path().join(run), "metrics.csv");
    assert_eq!(metrics("runs/0001-train"), metrics("again"));
    assert_ne!(metrics("again"), metrics("other"));

    let summary = summary(&run);
    let last = metrics("again").lines().last().unwrap().to_owned();
    let cells: Vec<&str> = last.split(',').collect();
    assert_eq!(summary["rounds"].to_string(), cells[0]);
    assert_eq!(summary["test_accuracy"].to_string(), cells[2]);
    assert_eq!((&summary["stopped_because"], &summary["agents"]), (&"max-rounds".into(), &3.into()));
    assert_eq!((&summary["version"], &summary["seed"]), (&env!("CARGO_PKG_VERSION").into(), &1.into()));
    assert_eq!(summary["frames_sent"].as_u64(), summary["rounds"].as_u64().map(|rounds| 3 * rounds));
    assert_eq!(summary["copies_lost"], summary["air"]["lost"]["iid"]);
    assert!(summary["copies_lost"].as_u64().unwrap() > 0 && summary["copies_refused"] == 0);
    assert!(summary["peak_resident_bytes"].as_u64() > summary["planned_memory_bytes"].as_u64());

    let told = text(&output.stdout);
    let round = format!("round {:>6}", summary["rounds"].as_u64().unwrap());
    assert_eq!(told.matches(&round).count(), 1, "the last line is told once: {told}");
    assert!(read(&run, "weights.svg").contains(">Weights of "));
}

#[test]
fn a_swarm_that_diverges_is_recorded_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let wild = ["--method", "single-level-noisy", "--eta-y", "1e30", "--epochs", "9", "--out", "wild"];
    let output = small(folder.path(), &wild);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("the loss is NaN"), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("help: lower eta_x, eta_y and eta_z"));
    let summary = summary(&folder.path().join("wild"));
    assert_eq!(summary["stopped_because"], "diverged");
    assert!(summary["test_loss"].is_null() && summary["consensus_error"].is_null(), "{summary}");
    assert!(!folder.path().join("wild/model.safetensors").exists());
}

#[test]
fn a_loss_far_above_a_guess_is_a_divergence_too() {
    let folder = tempfile::tempdir().unwrap();
    for (model, out) in [("softmax", "sure"), ("mlp", "lost")] {
        let wild =
            ["--data", "sample", "--model", model, "--model-width", "16", "--agents", "3", "--batch", "16"];
        let mut wild = train(folder.path(), &wild);
        let output = wild.args(["--eta-y", "50", "--epochs", "4", "--out", out]).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("where a guess gives 2.3 and 0.100, after round "));
        assert_eq!(summary(&folder.path().join(out))["stopped_because"], "diverged");
    }
}

#[test]
fn plain_fab_loses_mass_with_its_frames_and_the_ledger_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let defect = |algorithm: &str| {
        let lossy = ["--algorithm", algorithm, "--iid-loss", "0.3", "--epochs", "5", "--out", algorithm];
        let output = small(folder.path(), &lossy);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let summary = summary(&folder.path().join(algorithm));
        assert!(summary["copies_lost"].as_u64().unwrap() > 0, "{summary}");
        summary["tracking_defect"].as_f64().unwrap()
    };
    let (plain, ledger) = (defect("fab"), defect("ledger"));
    assert!(plain > 0.1 && ledger < 1e-3, "{plain} {ledger}");
}

#[test]
fn the_folder_of_a_trial_is_not_resumed_but_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let mut trial = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    trial.args(["run", "--rounds", "3", "--error-below", "0", "--out", "trial"]);
    assert!(trial.current_dir(folder.path()).output().unwrap().status.success());
    let refused = train(folder.path(), &["--resume", "trial"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let help = "help: repeat it from its start with `fabswarm run trial/scenario.toml`";
    assert!(text(&refused.stderr).contains(help), "{}", text(&refused.stderr));
}

#[test]
fn weights_say_which_labels_are_wrong_and_whose_they_are() {
    let folder = tempfile::tempdir().unwrap();
    assert!(small(folder.path(), &["--epochs", "2", "--out", "run"]).status.success());
    let run = folder.path().join("run");
    let table = read(&run, "weights.csv");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("sample,agent,given_label,true_label,weight"));
    let rows: Vec<Vec<f64>> =
        lines.map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    let mut samples: Vec<u32> = rows.iter().map(|row| row[0] as u32).collect();
    samples.sort_unstable();
    samples.dedup();
    assert_eq!(samples.len(), rows.len(), "each sample belongs to one agent");
    assert!(rows.iter().all(|row| row[1] < 3.0 && (0.0..=1.0).contains(&row[4])));
    // The share of pairs in which the sample with the wrong label weighs less is the AUC of the summary.
    let (wrong, right): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row[2] != row[3]);
    let below = |wrong: f64| -> f64 {
        right
            .iter()
            .map(|right| {
                if wrong < right[4] {
                    1.0
                } else if wrong == right[4] {
                    0.5
                } else {
                    0.0
                }
            })
            .sum()
    };
    let auc = wrong.iter().map(|row| below(row[4])).sum::<f64>() / (wrong.len() * right.len()) as f64;
    assert!((auc - summary(&run)["cleaning_auc"].as_f64().unwrap()).abs() < 1e-9, "{auc}");
    assert!(run.join("weights.parquet").exists());
}

#[test]
#[cfg(unix)]
fn ctrl_c_keeps_what_was_recorded_and_tells_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("long");
    let child = endless(folder.path(), "long");
    let impatient = train(folder.path(), &["--resume", "long"]).output().unwrap();
    assert_eq!(impatient.status.code(), Some(2));
    assert!(text(&impatient.stderr).contains("another fabswarm is writing to long\nhelp: wait"));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let summary = summary(&run);
    assert_eq!(summary["stopped_because"], "interrupted");
    let hint = format!("help: `fabswarm train --resume long` continues from round {}", summary["rounds"]);
    assert!(text(&output.stderr).contains(&hint), "{}\ndoes not contain\n{hint}", text(&output.stderr));

    let epochs = format!("{}", summary["epochs"].as_f64().unwrap().ceil() + 2.0);
    let resumed = train(folder.path(), &["--resume", "long", "--epochs", &epochs]).output().unwrap();
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert!(read(&run, "scenario.toml").contains(&format!("\nepochs = {epochs}\n")));
    assert!(small(folder.path(), &["--epochs", &epochs, "--out", "whole"]).status.success());
    assert_eq!(read(&run, "metrics.csv"), read(&folder.path().join("whole"), "metrics.csv"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_fills_up_is_no_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let line = format!(
        "trap '' XFSZ; ulimit -f 100; exec \"$FABSWARM\" train --device cpu {} --out full",
        SMALL.join(" ")
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).env("FABSWARM", env!("CARGO_BIN_EXE_fabswarm"));
    let filled = shell.current_dir(folder.path()).output().unwrap();
    assert_eq!(filled.status.code(), Some(5), "{}", text(&filled.stderr));
    let message = text(&filled.stderr);
    assert!(message.contains("error: cannot write full/checkpoint.safetensors: "), "{message}");
    assert!(message.contains("there is no checkpoint to continue from"), "{message}");
    assert!(!names(&folder.path().join("full")).iter().any(|name| name.starts_with("checkpoint")));
    assert!(folder.path().join("full/metrics.csv.part").exists());
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_one_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let child = endless(folder.path(), "run");
    // Nothing can be written where a folder stands.
    let in_the_way = run.join("checkpoint.safetensors.part");
    wait_for("a moment without a draft", || fs::create_dir(&in_the_way).is_ok());
    let output = child.wait_with_output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{message}");
    assert!(message.contains("error: cannot write run/checkpoint.safetensors: "), "{message}");
    assert!(message.contains("help: `fabswarm train --resume run` continues from round "), "{message}");

    fs::remove_dir(in_the_way).unwrap();
    let rounds = message.split("from round ").nth(1).unwrap().trim().parse::<u32>().unwrap();
    // An epoch has 12 rounds.
    let epochs = (rounds / 12 + 1).to_string();
    let resumed = train(folder.path(), &["--resume", "run", "--epochs", &epochs]).output().unwrap();
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
}

#[test]
fn a_folder_that_vanishes_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let child = endless(folder.path(), "run");
    fs::rename(&run, folder.path().join("elsewhere")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("see that the disk is not full and the folder still there"));
    assert!(text(&output.stderr).contains("there is no checkpoint to continue from"));
}

#[test]
fn a_run_on_files_of_its_own_goes_on_from_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../large/src/data/sample");
    for name in ["idx", "elsewhere"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    for name in names(&sample).iter().filter(|name| name.ends_with(".gz")) {
        fs::copy(sample.join(name), folder.path().join("idx").join(name)).unwrap();
    }
    fs::write(folder.path().join("trace.json"), r#"{"n": 2, "graphs": ["33"]}"#).unwrap();
    let files = ["--data", "idx", "--topology", "recorded", "--graphs", "trace.json"];
    let arguments = [&files[..], &["--agents", "2", "--model", "softmax", "--epochs", "1", "--out", "run"]];
    let first = train(folder.path(), &arguments.concat()).output().unwrap();
    assert!(first.status.success(), "{}", text(&first.stderr));
    let resume = ["--resume", "../run", "--epochs", "2"];
    let second = train(&folder.path().join("elsewhere"), &resume).output().unwrap();
    assert!(second.status.success(), "{}", text(&second.stderr));
}
