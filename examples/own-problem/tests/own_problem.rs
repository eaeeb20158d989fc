//! The example's problem in this process, on native and on emulated boards: the same bits everywhere.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/rendezvous.toml");

/// Runs the example on `boards` and returns its metrics and its summary.
fn run_on(folder: &Path, boards: &str) -> (String, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_own-problem"))
        .current_dir(folder)
        .args([SCENARIO, "--boards", boards, "--out", boards])
        .output()
        .unwrap();
    assert!(output.status.success(), "{boards}: {}", String::from_utf8_lossy(&output.stderr));
    let file = |name: &str| std::fs::read_to_string(folder.join(boards).join(name)).unwrap();
    (file("metrics.csv"), serde_json::from_str(&file("summary.json")).unwrap())
}

#[test]
fn agents_find_the_beacons_though_frames_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (_, summary) = run_on(folder.path(), "in-process");
    assert_eq!(summary["problem"], "own");
    assert_eq!(summary["stopped_because"], "small-gradient");
    assert!(summary["copies_lost"].as_u64() > Some(100), "the air loses three frames in ten");
    let distance = summary["task"]["distance_of_the_farthest_beacon"].as_f64().unwrap();
    assert!(distance < 0.01, "{distance}");
}

mod long {
    use super::*;

    #[test]
    #[ignore = "long: builds firmware with the example's problem"]
    fn three_boards_of_each_kind_compute_the_same_bits() {
        let folder = tempfile::tempdir().unwrap();
        let (metrics, _) = run_on(folder.path(), "in-process");
        for boards in ["native", "qemu"] {
            let (on_boards, summary) = run_on(folder.path(), boards);
            assert_eq!(on_boards, metrics, "{boards}");
            assert_eq!(summary["digest_mismatches"], 0, "{boards}");
            let checks = 3 * summary["rounds"].as_u64().unwrap();
            assert_eq!(summary["digest_checks"].as_u64(), Some(checks), "{boards}");
        }
    }
}

#[test]
fn it_is_the_whole_command() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_own-problem"))
        .current_dir(folder.path())
        .args(["run", "--problem", "sensor-trust", "--rounds", "5", "--error-below", "0"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
