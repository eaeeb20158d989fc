//! What can be made of a run afterwards: `verify`, `report`, `runs`.

use crate::outcome::{assert_ends, text};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn fabswarm(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// A short run with faults, which ends after its rounds.
fn run(folder: &Path, name: &str, more: &[&str]) {
    let faults = ["--iid-loss", "0.2", "--delay-rounds", "2", "--crashes", "3@20+10, 4@30+10 forgets"];
    let short = ["run", "--rounds", "60", "--error-below", "0", "--out", name];
    assert_ends(&fabswarm(folder, &[&short[..], &faults, more].concat()), 0, "");
}

/// What is printed where everything in the log of a [`run`] is equal.
fn all_equal(folder: &Path) -> String {
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("summary.json")).unwrap()).unwrap();
    format!("60 rounds executed again, 610 digests and {} frames equal\n", summary["frames_sent"])
}

#[test]
fn a_run_can_be_executed_again_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "a", &[]);
    let verified = fabswarm(folder.path(), &["verify", "a"]);
    assert_ends(&verified, 0, "");
    assert_eq!(text(&verified.stdout), all_equal(&folder.path().join("a")));

    // Another seed gives other states.
    let scenario = folder.path().join("a/scenario.toml");
    let changed = fs::read_to_string(&scenario).unwrap().replace("seed = 1\n", "seed = 2\n");
    fs::write(&scenario, changed).unwrap();
    let differs = fabswarm(folder.path(), &["verify", "a"]);
    assert_ends(&differs, 4, "error: agent 0 differs in round 0: its logged digest is ");

    // So does another number of agents.
    let changed = fs::read_to_string(&scenario).unwrap().replace("agents = 10\n", "agents = 12\n");
    fs::write(&scenario, changed).unwrap();
    let differs = fabswarm(folder.path(), &["verify", "a"]);
    assert_ends(&differs, 2, "round 0 has 10 digests, and 12 agents have one");
}

#[test]
fn a_run_on_boards_can_be_executed_again_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "boards", &["--boards", "qemu:5,native:5"]);
    let verified = fabswarm(folder.path(), &["verify", "boards"]);
    assert_ends(&verified, 0, "");
    assert_eq!(text(&verified.stdout), all_equal(&folder.path().join("boards")));
}

#[test]
fn the_frames_of_the_first_rounds_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    // Until there is no room for another round.
    run(folder.path(), "a", &["--sealed", "false", "--log-frames-mb", "0.1"]);
    let verified = fabswarm(folder.path(), &["verify", "a"]);
    assert_ends(&verified, 0, "");
    let printed = text(&verified.stdout);
    let frames: u32 = printed.split(" and ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((200..500).contains(&frames), "{printed}");
}

#[test]
fn a_single_flipped_bit_in_a_log_is_found() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "a", &[]);
    let log = folder.path().join("a/run.mcap");
    let bytes = fs::read(&log).unwrap();
    let digest = bytes.windows(10).rposition(|window| window == b"\"digest\":[").unwrap();
    let mut damaged = bytes;
    damaged[digest + 10] ^= 1;
    fs::write(&log, damaged).unwrap();
    assert_ends(&fabswarm(folder.path(), &["verify", "a"]), 2, "a/run.mcap is damaged after round ");
    assert_ends(&fabswarm(folder.path(), &["report", "a"]), 2, "Chunk CRC failed");
}

#[test]
fn what_is_no_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("notes")).unwrap();
    assert_ends(&fabswarm(folder.path(), &["report", "notes"]), 2, "notes is no run folder: ");
    assert_ends(&fabswarm(folder.path(), &["verify", "notes"]), 2, "help: ");
    assert_ends(&fabswarm(folder.path(), &["runs", "nowhere"]), 2, "cannot list the runs in nowhere: ");
}

#[test]
fn reports_need_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "a", &[]);
    run(folder.path(), "b", &["--seed", "2"]);
    let report = fs::read_to_string(folder.path().join("a/report.html")).unwrap();
    for part in ["Run a", "max-rounds", "class=\"line", "lost: iid</th>", "Agents after round 60"] {
        assert!(report.contains(part), "{part}");
    }
    assert!(!report.contains("http://") && !report.contains("https://") && !report.contains("<script"));
    let rebuilt = fabswarm(folder.path(), &["report", "a"]);
    assert_eq!(text(&rebuilt.stdout), "a/report.html\n");
    assert_eq!(fs::read_to_string(folder.path().join("a/report.html")).unwrap(), report);

    assert_ends(&fabswarm(folder.path(), &["report", "a", "b", "--out", "both.html"]), 0, "");
    let both = fs::read_to_string(folder.path().join("both.html")).unwrap();
    assert!(both.contains("<th scope=\"row\">seed</th><td>1</td><td>2</td>"), "{both}");
}

#[test]
fn runs_are_listed_and_cleaned() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "runs/0001-a", &[]);
    run(folder.path(), "runs/0002-b", &["--seed", "2", "--agents", "12"]);
    fs::create_dir(folder.path().join("runs/notes")).unwrap();
    let listed = fabswarm(folder.path(), &["runs"]);
    let lines: Vec<&str> = text(&listed.stdout).lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(
        lines[0].starts_with("run ") && lines[1].starts_with("runs/0001-a  policy-evaluation"),
        "{lines:?}"
    );
    let only = fabswarm(folder.path(), &["runs", "--only", "0002", "--sort", "error"]);
    assert!(text(&only.stdout).contains("runs/0002-b") && !text(&only.stdout).contains("0001"));
    let planned = fabswarm(folder.path(), &["runs", "clean", "--keep", "1"]);
    assert!(text(&planned.stdout).contains("add --yes"), "{}", text(&planned.stdout));
    assert!(folder.path().join("runs/0001-a").exists());
    assert_ends(&fabswarm(folder.path(), &["runs", "clean", "--keep", "1", "--yes"]), 0, "");
    assert!(!folder.path().join("runs/0001-a").exists());
    assert!(folder.path().join("runs/0002-b").exists() && folder.path().join("runs/notes").exists());
}

#[test]
#[cfg(not(feature = "live"))]
fn a_build_without_the_page_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["run", "--live"][..], &["show", "a"]] {
        let refused = fabswarm(folder.path(), arguments);
        assert_ends(&refused, 2, "help: add the feature, `cargo run --release --features live -- …`");
    }
    assert!(!folder.path().join("runs").exists());
}
