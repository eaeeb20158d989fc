//! `docs/files.md` beside what runs write.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
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

#[test]
fn every_column_and_key_is_defined_and_none_other() {
    let folder = tempfile::tempdir().unwrap();
    let short = ["--rounds", "3", "--error-below", "0", "--out", "run"];
    fabswarm(folder.path(), &[&["run"], &short[..]].concat());
    let sample =
        ["--data", "sample", "--model", "softmax", "--agents", "3", "--epochs", "1", "--out", "train"];
    fabswarm(folder.path(), &[&["train", "--device", "cpu"], &sample[..]].concat());
    let (run, train) = (folder.path().join("run"), folder.path().join("train"));
    assert_eq!(columns(&run.join("metrics.csv")), documented("metrics.csv, metrics.parquet of `run`"));
    assert_eq!(keys(&run.join("summary.json")), documented("summary.json of `run`"));
    assert_eq!(columns(&train.join("metrics.csv")), documented("metrics.csv of `train`"));
    assert_eq!(columns(&train.join("times.csv")), documented("times.csv of `train`"));
    assert_eq!(keys(&train.join("summary.json")), documented("summary.json of `train`"));
    assert_eq!(columns(&train.join("weights.csv")), documented("weights.csv, weights.parquet of `train`"));
}

#[test]
fn the_summary_says_what_its_error_measures() {
    let folder = tempfile::tempdir().unwrap();
    for (problem, expected) in
        [("policy-evaluation", "distance_to_solution"), ("sensor-trust", "gradient_norm")]
    {
        fabswarm(
            folder.path(),
            &["run", "--problem", problem, "--rounds", "3", "--error-below", "0", "--out", problem],
        );
        let summary = fs::read(folder.path().join(problem).join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
        assert_eq!(summary["error_kind"], expected);
    }
}
