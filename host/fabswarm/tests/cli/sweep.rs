//! `fabswarm sweep` seen from outside.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn sweep(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.current_dir(folder).arg("sweep").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

const GRID: [&str; 7] = ["run", "--seed", "1..3", "--iid-loss", "0,0.5", "--out", "swept"];

#[test]
fn every_combination_is_run_once_and_stands_in_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let first = sweep(folder.path(), &GRID);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let printed = text(&first.stdout);
    assert!(printed.contains("faults.iid_loss  runs  rounds to 1 % distance"), "{printed}");
    assert_eq!(printed.lines().filter(|line| line.trim_start().starts_with("0.")).count(), 2, "{printed}");

    let swept = folder.path().join("swept");
    let runs = fs::read_to_string(swept.join("runs.csv")).unwrap();
    let head: Vec<&str> = runs.lines().next().unwrap().split(',').collect();
    assert_eq!(&head[..2], ["seed", "faults_iid_loss"]);
    assert_eq!(runs.lines().count(), 1 + 6);
    let metrics = fs::read_to_string(swept.join("metrics.csv")).unwrap();
    let own = fs::read_to_string(swept.join("runs/seed=2,iid-loss=0.5/metrics.csv")).unwrap();
    let last = own.lines().last().unwrap();
    assert!(metrics.lines().any(|line| line == format!("2,0.5,{last}")), "{last}");

    let figure = fs::read_to_string(swept.join("sweep.svg")).unwrap();
    for words in ["6 runs, by iid-loss", "iid-loss 0.5 (3 runs)", "median and range over seeds"] {
        assert!(figure.contains(words), "{words}");
    }
    assert_eq!(figure.matches("fill-opacity").count(), 2, "a band for each loss");

    // A run that is missing is made again, and no other.
    let kept = swept.join("runs/seed=1,iid-loss=0.0/summary.json");
    let made = fs::metadata(&kept).unwrap().modified().unwrap();
    fs::remove_dir_all(swept.join("runs/seed=3,iid-loss=0.5")).unwrap();
    let again = sweep(folder.path(), &GRID);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(
        text(&again.stderr).contains("6 runs into swept, 5 of them done already"),
        "{}",
        text(&again.stderr)
    );
    assert_eq!(fs::metadata(&kept).unwrap().modified().unwrap(), made);
    assert_eq!(fs::read_to_string(swept.join("metrics.csv")).unwrap(), metrics);
}

#[test]
fn the_problem_and_the_links_have_seeds_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = |out: &str, flags: &[&str]| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
        run.current_dir(folder.path()).args(["run", "--rounds", "20", "--error-below", "0", "--out", out]);
        assert!(run.args(flags).output().unwrap().status.success(), "{flags:?}");
        fs::read_to_string(folder.path().join(out).join("metrics.csv")).unwrap()
    };
    let first = metrics("first", &["--seed", "1", "--iid-loss", "0.3"]);
    let both = ["--seed", "2", "--problem-seed", "1", "--network-seed", "1", "--iid-loss", "0.3"];
    assert_eq!(metrics("both", &both), first);
    assert_ne!(metrics("links", &["--seed", "1", "--network-seed", "2", "--iid-loss", "0.3"]), first);
    // Where links leave nothing to chance, only the problem's seed counts.
    let complete = metrics("complete", &["--topology", "complete"]);
    assert_eq!(metrics("other-links", &["--topology", "complete", "--network-seed", "5"]), complete);
    assert_ne!(metrics("other-problem", &["--topology", "complete", "--problem-seed", "5"]), complete);
}

#[test]
fn results_of_other_settings_are_never_taken_for_these() {
    let folder = tempfile::tempdir().unwrap();
    let grid = ["run", "--seed", "1,2", "--rounds", "20", "--error-below", "0", "--out", "swept"];
    assert!(sweep(folder.path(), &grid).status.success());
    let mut longer = grid;
    longer[4] = "30";
    let refused = sweep(folder.path(), &longer);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("is of a sweep with other settings\nhelp: "),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn results_of_an_earlier_version_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let grid = ["run", "--seed", "1,2", "--rounds", "20", "--error-below", "0", "--out", "swept"];
    assert!(sweep(folder.path(), &grid).status.success());
    let path = folder.path().join("swept/runs/seed=2/metrics.csv");
    let table = fs::read_to_string(&path).unwrap();
    fs::write(&path, table.replace("distance_to_solution", "error")).unwrap();
    let refused = sweep(folder.path(), &grid);
    let printed = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    for words in ["seed=2/metrics.csv: its column `error`", "`gradient_norm`\nhelp: rename it"] {
        assert!(printed.contains(words), "{printed}");
    }
    fs::write(&path, table).unwrap();
    assert!(sweep(folder.path(), &grid).status.success(), "the remedy helps");
}

#[test]
fn what_cannot_run_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&["run", "--seed", "3..1"][..], "--seed 3..1 is not a range"),
        (&["run", "--algorithm", "fab,adam"], "--algorithm adam is not one of its words"),
        (&["run", "--agents", "4,0"], "swarm.agents = 0 is out of range"),
        (&["run", "--seed", "1..400", "--agents", "2..400"], "more than 100000 runs"),
    ] {
        let output = sweep(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("\nhelp: "), "{}", text(&output.stderr));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_swarm_that_diverges_is_a_result_too() {
    let folder = tempfile::tempdir().unwrap();
    let output = sweep(folder.path(), &["run", "--eta-x", "0.6,500", "--out", "swept"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let runs = fs::read_to_string(folder.path().join("swept/runs.csv")).unwrap();
    assert!(runs.contains("converged") && runs.contains("diverged"), "{runs}");
}
