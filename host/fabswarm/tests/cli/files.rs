//! `docs/files.md` beside what runs write.

use crate::support::Folder;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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

fn columns(folder: &Folder, table: &str) -> BTreeSet<String> {
    folder.read(table).lines().next().unwrap().split(',').map(str::to_owned).collect()
}

fn keys(folder: &Folder, run: &str) -> BTreeSet<String> {
    folder.summary(run).as_object().unwrap().keys().cloned().collect()
}

/// Names that no run has together: one half where the solution is known, the other half where it is not.
const BY_KIND: [[&str; 2]; 2] = [
    ["distance_to_solution", "rounds_to_one_percent_distance"],
    ["gradient_norm", "rounds_to_one_percent_gradient"],
];

#[test]
fn every_column_and_key_is_defined_and_none_other() {
    let folder = Folder::new();
    for (problem, (own, others)) in
        [("policy-evaluation", (BY_KIND[0], BY_KIND[1])), ("sensor-trust", (BY_KIND[1], BY_KIND[0]))]
    {
        folder.succeeds(&format!("run --problem {problem} --rounds 3 --error-below 0 --out {problem}"));
        let without = |mut names: BTreeSet<String>| {
            names.retain(|name| !others.contains(&name.as_str()));
            names
        };
        let table = format!("{problem}/metrics.csv");
        assert_eq!(columns(&folder, &table), without(documented("metrics.csv of `run`")));
        assert_eq!(keys(&folder, problem), without(documented("summary.json of `run`")));
        // The error is named after what it measures, with the same bits in both files.
        let summary = folder.summary(problem);
        assert_eq!(summary["error_kind"], own[0]);
        let text = folder.read(&table);
        let place = text.lines().next().unwrap().split(',').position(|name| name == own[0]).unwrap();
        let last = text.lines().last().unwrap().split(',').nth(place).unwrap();
        assert_eq!(summary[own[0]].as_f64().unwrap(), last.parse::<f64>().unwrap());
    }
    folder.succeeds("train --device cpu --data sample --model softmax --agents 3 --epochs 1 --out train");
    assert_eq!(keys(&folder, "train"), documented("summary.json of `train`"));
    for table in ["metrics.csv", "times.csv", "weights.csv"] {
        assert_eq!(columns(&folder, &format!("train/{table}")), documented(&format!("{table} of `train`")));
    }
}
