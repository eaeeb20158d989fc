//! `fabswarm paper` seen from outside.

use crate::support::{Folder, assert_contains};
use std::fs;

#[test]
fn the_list_names_every_experiment_and_an_unknown_name_is_refused() {
    let folder = Folder::new();
    assert_contains(&folder.succeeds("paper list").stdout, "sensitivity");
    folder.ends(
        "paper run fig1",
        2,
        "help: `fabswarm paper list` says which figure each shows: rates, policy-evaluation,",
    );
}

#[test]
fn all_small_experiments_run_and_what_is_done_is_not_done_again() {
    let folder = Folder::new();
    let first = folder.succeeds("paper all --quick").stdout;
    assert!(!first.contains("SEEN") && first.contains("no verdict on the paper"), "{first}");
    let out = folder.join("paper");
    let page = fs::read_to_string(out.join("index.html")).unwrap();
    for outside in ["src=", "href=\"http", "<script", "<link"] {
        assert!(!page.contains(outside), "the page is not self-contained: {outside}");
    }
    let list = folder.succeeds("paper list").stdout;
    let names = list.lines().filter(|line| !line.starts_with(' '));
    for name in names.map(|line| line.split(' ').next().unwrap()) {
        assert!(page.contains(&format!("id=\"{name}\"")), "{name}");
        let verdict = fs::read_to_string(out.join(name).join("verdict.md")).unwrap();
        assert!(verdict.contains("## Results") && !verdict.contains("## Verdicts"), "{name}: {verdict}");
    }
    assert!(out.join("policy-evaluation/figure.svg").exists());

    // Results that are kept are read, not computed: their times of writing stay.
    let written = || -> Vec<_> {
        let files = fs::read_dir(out.join("results")).unwrap().map(|file| file.unwrap());
        let mut files: Vec<_> =
            files.map(|file| (file.file_name(), file.metadata().unwrap().modified().unwrap())).collect();
        files.sort();
        files
    };
    let before = written();
    assert_eq!(folder.succeeds("paper all --quick").stdout, first);
    assert_eq!(before, written());

    let damaged = out.join("results").join(&before[0].0);
    fs::write(&damaged, "{").unwrap();
    folder.succeeds("paper all --quick");
    let after = written();
    assert_eq!(before[1..], after[1..]);
    assert_ne!(fs::read(&damaged).unwrap(), b"{", "a damaged result is computed anew");
}
