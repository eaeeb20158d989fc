//! `fabswarm train` seen from outside: what it leaves behind, also when it cannot write it.

use crate::support::{Ended, Folder, Running, assert_contains, wait_for};
use std::cmp::Ordering;
use std::fs;
use std::path::Path;

/// A run of a moment, on the sample.
const SMALL: &str = "--data sample --model softmax --agents 3 --batch 16 --checkpoint-every 1";

fn small(folder: &Folder, flags: &str) -> Ended {
    folder.run(&format!("train --device cpu {SMALL} {flags}"))
}

/// A run that would go on for ever and has kept a checkpoint.
fn endless(folder: &Folder, out: &str) -> Running {
    let line = format!("train --device cpu {SMALL} --epochs 1000000 --out {out}");
    let mut run = Running::start(folder.fabswarm(&line));
    run.wait_for("a checkpoint", |_| folder.join(out).join("checkpoint.safetensors").exists());
    run
}

#[test]
fn a_run_leaves_the_same_metrics_for_the_same_seed_and_a_summary_in_the_words_of_a_trial() {
    let folder = Folder::new();
    let lossy = "--algorithm ledger --iid-loss 0.2 --epochs 3";
    let ended = small(&folder, lossy);
    ended.check(0, "");
    let run = "runs/0001-train";
    let (events, files): (Vec<String>, Vec<String>) =
        folder.names(run).into_iter().partition(|name| name.starts_with("events.out.tfevents."));
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
            "weights.svg"
        ]
    );
    small(&folder, &format!("{lossy} --out again")).check(0, "");
    small(&folder, &format!("{lossy} --seed 2 --out other")).check(0, "");
    let metrics = |run: &str| folder.read(&format!("{run}/metrics.csv"));
    assert_eq!(metrics(run), metrics("again"));
    assert_ne!(metrics("again"), metrics("other"));

    let summary = folder.summary(run);
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

    let round = format!("round {:>6}", summary["rounds"].as_u64().unwrap());
    assert_eq!(ended.stdout.matches(&round).count(), 1, "the last line is told once: {ended}");
    assert_contains(&folder.read(&format!("{run}/weights.svg")), ">Weights of ");
}

#[test]
fn a_swarm_that_diverges_is_recorded_and_told() {
    let folder = Folder::new();
    let wild = "--method single-level-noisy --eta-y 1e30 --epochs 9 --out wild";
    let ended = small(&folder, wild);
    ended.check(3, "the loss is NaN");
    assert_contains(&ended.stderr, "and 0.03 by default here: begin with the default");
    let summary = folder.summary("wild");
    assert_eq!(summary["stopped_because"], "diverged");
    assert!(summary["test_loss"].is_null() && summary["consensus_error"].is_null(), "{summary}");
    assert!(!folder.join("wild/model.safetensors").exists());
}

#[test]
fn a_loss_far_above_a_guess_is_a_divergence_too() {
    let folder = Folder::new();
    let wild = "train --device cpu --data sample --agents 3 --batch 16 --eta-y 50 --epochs 4";
    for (model, out) in [("softmax", "sure"), ("mlp --model-width 16", "lost")] {
        let guess = "where a guess gives 2.3 and 0.100, after round ";
        folder.ends(&format!("{wild} --model {model} --out {out}"), 3, guess);
        assert_eq!(folder.summary(out)["stopped_because"], "diverged");
    }
}

#[test]
fn plain_fab_loses_mass_with_its_frames_and_the_ledger_does_not() {
    let folder = Folder::new();
    let defect = |algorithm: &str| {
        let lossy = format!("--algorithm {algorithm} --iid-loss 0.3 --epochs 5 --out {algorithm}");
        small(&folder, &lossy).check(0, "");
        let summary = folder.summary(algorithm);
        assert!(summary["copies_lost"].as_u64().unwrap() > 0, "{summary}");
        summary["tracking_defect"].as_f64().unwrap()
    };
    let (plain, ledger) = (defect("fab"), defect("ledger"));
    assert!(plain > 0.1 && ledger < 1e-3, "{plain} {ledger}");
}

#[test]
fn weights_say_which_labels_are_wrong_and_whose_they_are() {
    let folder = Folder::new();
    small(&folder, "--epochs 2 --out run").check(0, "");
    let table = folder.read("run/weights.csv");
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
    let pairs = wrong.iter().flat_map(|wrong| right.iter().map(|right| wrong[4].total_cmp(&right[4])));
    let shares = pairs.map(|order| match order {
        Ordering::Less => 1.0,
        Ordering::Equal => 0.5,
        Ordering::Greater => 0.0,
    });
    let auc = shares.sum::<f64>() / (wrong.len() * right.len()) as f64;
    assert!((auc - folder.summary("run")["cleaning_auc"].as_f64().unwrap()).abs() < 1e-9, "{auc}");
}

#[test]
fn ctrl_c_keeps_what_was_recorded_and_tells_how_to_go_on() {
    let folder = Folder::new();
    let run = endless(&folder, "long");
    let resume = "train --device cpu --resume long";
    folder.refuses(resume, "another fabswarm is writing to long\nhelp: wait");
    let ended = run.interrupt();
    let summary = folder.summary("long");
    assert_eq!(summary["stopped_because"], "interrupted");
    let hint = format!("help: `fabswarm train --resume long` continues from round {}", summary["rounds"]);
    assert_contains(&ended.stderr, &hint);

    let epochs = summary["epochs"].as_f64().unwrap().ceil() + 2.0;
    folder.succeeds(&format!("{resume} --epochs {epochs}"));
    assert_contains(&folder.read("long/scenario.toml"), &format!("\nepochs = {epochs}\n"));
    small(&folder, &format!("--epochs {epochs} --out whole")).check(0, "");
    assert_eq!(folder.read("long/metrics.csv"), folder.read("whole/metrics.csv"));
}

#[test]
fn a_disk_that_fills_up_is_no_bad_input() {
    let folder = Folder::new();
    let line = "trap '' XFSZ; ulimit -f 100; exec \"$FABSWARM\" train --device cpu";
    let filled = folder.shell(&format!("{line} {SMALL} --out full"));
    filled.check(5, "error: cannot write full/checkpoint.safetensors: ");
    assert_contains(&filled.stderr, "there is no checkpoint to continue from");
    assert!(!folder.names("full").iter().any(|name| name.starts_with("checkpoint")));
    assert!(folder.join("full/metrics.csv.part").exists());
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_one_before_it() {
    let folder = Folder::new();
    let run = endless(&folder, "run");
    // Nothing can be written where a folder stands.
    let in_the_way = folder.join("run/checkpoint.safetensors.part");
    wait_for("a moment without a draft", || fs::create_dir(&in_the_way).is_ok());
    let ended = run.ends();
    ended.check(5, "error: cannot write run/checkpoint.safetensors: ");
    assert_contains(&ended.stderr, "help: `fabswarm train --resume run` continues from round ");

    fs::remove_dir(in_the_way).unwrap();
    let rounds = ended.stderr.split("from round ").nth(1).unwrap().trim().parse::<u32>().unwrap();
    // An epoch has 12 rounds.
    folder.succeeds(&format!("train --device cpu --resume run --epochs {}", rounds / 12 + 1));
}

#[test]
fn a_folder_that_vanishes_is_told() {
    let folder = Folder::new();
    let run = endless(&folder, "run");
    fs::rename(folder.join("run"), folder.join("elsewhere")).unwrap();
    let ended = run.ends();
    ended.check(5, "see that the disk is not full and the folder still there");
    assert_contains(&ended.stderr, "there is no checkpoint to continue from");
}

#[test]
fn a_run_on_files_of_its_own_goes_on_from_another_folder() {
    let folder = Folder::new();
    for name in ["idx", "elsewhere"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/src/sample");
    for file in fs::read_dir(sample).unwrap().map(|file| file.unwrap()) {
        if file.path().extension().is_some_and(|extension| extension == "gz") {
            fs::copy(file.path(), folder.join("idx").join(file.file_name())).unwrap();
        }
    }
    folder.write("trace.json", r#"{"n": 2, "graphs": ["33"]}"#);
    let files = "--data idx --topology recorded --graphs trace.json";
    folder.succeeds(&format!("train --device cpu {files} --agents 2 --model softmax --epochs 1 --out run"));
    let mut second = folder.fabswarm("train --device cpu --resume ../run --epochs 2");
    Ended::from(second.current_dir(folder.join("elsewhere")).output().unwrap()).check(0, "");
}
