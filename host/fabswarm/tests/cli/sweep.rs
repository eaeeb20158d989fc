//! `fabswarm sweep` seen from outside.

use crate::support::{Folder, assert_contains};
use std::fs;

const GRID: &str = "sweep run --seed 1..3 --iid-loss 0,0.5 --out swept";

#[test]
fn every_combination_is_run_once_and_stands_in_one_table() {
    let folder = Folder::new();
    let printed = folder.succeeds(GRID).stdout;
    assert_contains(&printed, "faults.iid_loss  runs  rounds to 1 % distance");
    assert_eq!(printed.lines().filter(|line| line.trim_start().starts_with("0.")).count(), 2, "{printed}");

    let runs = folder.read("swept/runs.csv");
    let head: Vec<&str> = runs.lines().next().unwrap().split(',').collect();
    assert_eq!(&head[..2], ["seed", "faults_iid_loss"]);
    assert_eq!(runs.lines().count(), 1 + 6);
    let metrics = folder.read("swept/metrics.csv");
    let own = folder.read("swept/runs/seed=2,iid-loss=0.5/metrics.csv");
    let last = own.lines().last().unwrap();
    assert!(metrics.lines().any(|line| line == format!("2,0.5,{last}")), "{last}");

    let figure = folder.read("swept/sweep.svg");
    for words in ["6 runs, by iid-loss", "iid-loss 0.5 (3 runs)", "median and range over seeds"] {
        assert_contains(&figure, words);
    }
    assert_eq!(figure.matches("fill-opacity").count(), 2, "a band for each loss");

    // A run that is missing is made again, and no other.
    let kept = folder.join("swept/runs/seed=1,iid-loss=0.0/summary.json");
    let made = fs::metadata(&kept).unwrap().modified().unwrap();
    fs::remove_dir_all(folder.join("swept/runs/seed=3,iid-loss=0.5")).unwrap();
    folder.ends(GRID, 0, "6 runs into swept, 5 of them done already");
    assert_eq!(fs::metadata(&kept).unwrap().modified().unwrap(), made);
    assert_eq!(folder.read("swept/metrics.csv"), metrics);

    // So is one that was interrupted by itself.
    let summary = folder.read("swept/runs/seed=3,iid-loss=0.5/summary.json");
    let interrupted = summary.replace("\"converged\"", "\"interrupted\"");
    assert_ne!(summary, interrupted);
    folder.write("swept/runs/seed=3,iid-loss=0.5/summary.json", interrupted);
    folder.ends(GRID, 0, "6 runs into swept, 5 of them done already");
}

/// Runs with other settings, or on links that have changed, are not put beside those before.
#[test]
fn a_sweep_goes_on_with_the_same_files() {
    let folder = Folder::new();
    let links = "sender,receiver\n0,1\n1,2\n2,0\n";
    folder.write("g.csv", links);
    let sweep =
        "sweep run --topology recorded --graphs g.csv --agents 3 --rounds 20 --error-below 0 --out swept";
    folder.succeeds(&format!("{sweep} --seed 1,2"));
    folder.write("g.csv", format!("{links}0,2\n"));
    let other = "is of a sweep with other settings or files\nhelp: ";
    folder.refuses(&format!("{sweep} --seed 1..3"), other);
    folder.write("g.csv", links);
    folder.refuses(&format!("{} --seed 1,2", sweep.replace("20", "30")), other);
    folder.ends(&format!("{sweep} --seed 1..3"), 0, "3 runs into swept, 2 of them done already");

    folder.write("h.csv", links);
    folder.succeeds(&sweep.replace("g.csv --agents", "g.csv,h.csv --agents").replace("swept", "both"));
    assert_eq!(folder.names("both/runs"), ["graphs=g.csv", "graphs=h.csv"]);
}

#[test]
fn the_problem_and_the_links_have_seeds_of_their_own() {
    let folder = Folder::new();
    let metrics = |out: &str, flags: &str| {
        folder.succeeds(&format!("run --rounds 20 --error-below 0 --out {out} {flags}"));
        folder.read(&format!("{out}/metrics.csv"))
    };
    let first = metrics("first", "--seed 1 --iid-loss 0.3");
    assert_eq!(metrics("both", "--seed 2 --problem-seed 1 --network-seed 1 --iid-loss 0.3"), first);
    assert_ne!(metrics("links", "--seed 1 --network-seed 2 --iid-loss 0.3"), first);
    // Where links leave nothing to chance, only the problem's seed counts.
    let complete = metrics("complete", "--topology complete");
    assert_eq!(metrics("other-links", "--topology complete --network-seed 5"), complete);
    assert_ne!(metrics("other-problem", "--topology complete --problem-seed 5"), complete);
}

#[test]
fn what_cannot_run_is_refused_before_anything_runs() {
    let folder = Folder::new();
    for (flags, expected) in [
        ("--seed 3..1", "--seed 3..1 is not a range"),
        ("--seed 1..x", "--seed 1..x is not a range"),
        ("--seed 0..10000000", "--seed 0..10000000 names too many values"),
        ("--seed 1,1", "--seed 1,1: 1 stands there twice"),
        ("--seed 1.5", "--seed: seed = 1.5 has the wrong type"),
        ("--iid-loss 0,,1", "--iid-loss: faults.iid_loss = \"\" has the wrong type"),
        ("--algorithm fab,adam", "algorithm.kind = \"adam\" is not a valid choice"),
        ("--agents 4,0", "swarm.agents = 0 is out of range"),
        ("--seed 1..400 --agents 2..400", "more than 100000 runs"),
    ] {
        folder.refuses(&format!("sweep run {flags}"), expected);
    }
}

#[test]
fn a_swarm_that_diverges_is_a_result_too() {
    let folder = Folder::new();
    folder.succeeds("sweep run --eta-x 0.6,500 --out swept");
    let runs = folder.read("swept/runs.csv");
    assert!(runs.contains("converged") && runs.contains("diverged"), "{runs}");
    // A report takes the runs of a sweep.
    assert_eq!(folder.succeeds("report swept").stdout, "comparison.html\n");
}
