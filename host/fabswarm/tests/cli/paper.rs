//! `fabswarm paper` seen from outside.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn paper(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.current_dir(folder).stdin(Stdio::null()).arg("paper").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn the_list_names_every_experiment_and_an_unknown_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let list = paper(folder.path(), &["list"]);
    assert!(list.status.success());
    assert!(text(&list.stdout).contains("sensitivity"), "{}", text(&list.stdout));
    let unknown = paper(folder.path(), &["run", "sensitivty"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("help: `fabswarm paper list`"), "{}", text(&unknown.stderr));
    let unknown = paper(folder.path(), &["run", "policy-evaluation", "--panel", "ω = 7"]);
    assert_eq!(unknown.status.code(), Some(2));
    let told = text(&unknown.stderr);
    assert!(told.contains("contains `ω = 7`\nhelp: its panels are ") && told.contains("; "), "{told}");
}

#[test]
fn all_small_experiments_run_and_what_is_done_is_not_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = paper(folder.path(), &["all", "--quick"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let out = folder.path().join("paper");
    let page = fs::read_to_string(out.join("index.html")).unwrap();
    for outside in ["src=", "href=\"http", "<script", "<link"] {
        assert!(!page.contains(outside), "the page is not self-contained: {outside}");
    }
    let list = paper(folder.path(), &["list"]);
    let names = text(&list.stdout).lines().filter(|line| !line.starts_with(' '));
    for name in names.map(|line| line.split(' ').next().unwrap()) {
        assert!(page.contains(&format!("id=\"{name}\"")), "{name}");
        let verdict = fs::read_to_string(out.join(name).join("verdict.md")).unwrap();
        assert!(verdict.contains("## Verdicts"), "{name}: {verdict}");
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
    let second = paper(folder.path(), &["all", "--quick"]);
    assert!(second.status.success(), "{}", text(&second.stderr));
    assert_eq!(before, written());
    assert_eq!(text(&first.stdout), text(&second.stdout));

    let damaged = out.join("results").join(&before[0].0);
    fs::write(&damaged, "{").unwrap();
    let third = paper(folder.path(), &["all", "--quick"]);
    assert!(third.status.success(), "{}", text(&third.stderr));
    let after = written();
    assert_eq!(before[1..], after[1..]);
    assert_ne!(fs::read(&damaged).unwrap(), b"{", "a damaged result is computed anew");
}
