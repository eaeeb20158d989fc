//! `docs/files.md` beside what runs write.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names in the first column of the table below `heading`.
fn documented(heading: &str) -> BTreeSet<String> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/files.md")).unwrap();
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).expect(heading);
    let table = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = table.take_while(|line| line.starts_with('|'));
    let first_cells = rows.map(|row| row.split('|').nth(1).unwrap().to_owned());
    first_cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

fn columns(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().next().unwrap().split(',').map(str::to_owned).collect()
}

fn keys(path: &Path) -> BTreeSet<String> {
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    summary.as_object().unwrap().keys().cloned().collect()
}

fn fabswarm(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs `problem` for three rounds, and returns its folder.
fn short_run(folder: &Path, problem: &str) -> PathBuf {
    fabswarm(folder, &["run", "--problem", problem, "--rounds", "3", "--error-below", "0", "--out", problem]);
    folder.join(problem)
}

/// Names that no run has together: one half where the solution is known, the other half where it is not.
const BY_KIND: [[&str; 2]; 2] = [
    ["distance_to_solution", "rounds_to_one_percent_distance"],
    ["gradient_norm", "rounds_to_one_percent_gradient"],
];

#[test]
fn every_column_and_key_is_defined_and_none_other() {
    let folder = tempfile::tempdir().unwrap();
    let runs = ["policy-evaluation", "sensor-trust"].map(|problem| short_run(folder.path(), problem));
    for (run, others) in runs.iter().zip([BY_KIND[1], BY_KIND[0]]) {
        let without = |mut names: BTreeSet<String>| {
            names.retain(|name| !others.contains(&name.as_str()));
            names
        };
        let defined = documented("metrics.csv, metrics.parquet of `run`");
        assert_eq!(columns(&run.join("metrics.csv")), without(defined));
        assert_eq!(keys(&run.join("summary.json")), without(documented("summary.json of `run`")));
    }
    let sample =
        ["--data", "sample", "--model", "softmax", "--agents", "3", "--epochs", "1", "--out", "train"];
    fabswarm(folder.path(), &[&["train", "--device", "cpu"], &sample[..]].concat());
    let train = folder.path().join("train");
    assert_eq!(columns(&train.join("metrics.csv")), documented("metrics.csv of `train`"));
    assert_eq!(columns(&train.join("times.csv")), documented("times.csv of `train`"));
    assert_eq!(keys(&train.join("summary.json")), documented("summary.json of `train`"));
    assert_eq!(columns(&train.join("weights.csv")), documented("weights.csv, weights.parquet of `train`"));
}

#[test]
fn the_error_is_named_after_what_it_measures() {
    let folder = tempfile::tempdir().unwrap();
    for (problem, [expected, _]) in ["policy-evaluation", "sensor-trust"].into_iter().zip(BY_KIND) {
        let run = short_run(folder.path(), problem);
        let summary: serde_json::Value =
            serde_json::from_slice(&fs::read(run.join("summary.json")).unwrap()).unwrap();
        assert_eq!(summary["error_kind"], expected);
        let table = fs::read_to_string(run.join("metrics.csv")).unwrap();
        let names: Vec<&str> = table.lines().next().unwrap().split(',').collect();
        let last: Vec<&str> = table.lines().last().unwrap().split(',').collect();
        let place = names.iter().position(|name| *name == expected).unwrap();
        // The same bits in both files.
        assert_eq!(summary[expected].as_f64().unwrap(), last[place].parse::<f64>().unwrap());
    }
}

#[test]
fn a_folder_with_names_of_before_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let run = short_run(folder.path(), "policy-evaluation");
    let path = run.join("metrics.csv");
    let table = fs::read_to_string(&path).unwrap().replace("distance_to_solution", "error");
    fs::write(&path, table).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    let output = command.arg("report").arg(&run).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("`distance_to_solution` or `gradient_norm`\nhelp: rename it"), "{printed}");
}
