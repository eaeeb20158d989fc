//! Commands on a finished run: `verify`, `report`, `runs`.

use crate::support::{Folder, assert_contains};
use std::fs;

/// A short run with faults, which ends after its rounds.
fn run(folder: &Folder, name: &str, more: &str) {
    let faults = "--iid-loss 0.2 --delay-rounds 2 --crashes '3@20+10, 4@30+10 forgets'";
    folder.succeeds(&format!("run --rounds 60 --error-below 0 --out {name} {faults} {more}"));
}

/// Checks that everything in the log of a [`run`] is equal.
#[track_caller]
fn is_verified(folder: &Folder, name: &str) {
    let frames = &folder.summary(name)["frames_sent"];
    let printed = folder.succeeds(&format!("verify {name}")).stdout;
    assert_contains(&printed, &format!("60 rounds executed again, 610 digests and {frames} frames equal\n"));
    assert_contains(&printed, "61 rows of metrics.csv equal, summary.json too, answer.npz too\n");
}

#[test]
fn a_run_can_be_executed_again_and_compared() {
    let folder = Folder::new();
    run(&folder, "a", "");
    is_verified(&folder, "a");

    // Results that were changed are found.
    for (file, from, to) in [
        ("metrics.csv", "\n7,0", "\n7,1"),
        ("summary.json", "\"consensus_error\": ", "\"consensus_error\": 1"),
    ] {
        let text = folder.read(&format!("a/{file}"));
        folder.write(&format!("a/{file}"), text.replace(from, to));
        folder.ends("verify a", 4, file);
        folder.write(&format!("a/{file}"), text);
    }
    // So are results that were taken away.
    for (file, from, expected) in [
        ("metrics.csv", "\n7,", "metrics.csv has no row of round 7"),
        ("metrics.csv", "round,", "its columns are not those of a run"),
        ("summary.json", "\"frames_sent\": ", "summary.json has `frames_sent` null"),
    ] {
        let text = folder.read(&format!("a/{file}"));
        folder.write(&format!("a/{file}"), text.replacen(from, &from.replacen(['7', 'r', 'f'], "8", 1), 1));
        let ended = folder.run("verify a");
        assert!(ended.code != Some(0) && ended.to_string().contains(expected), "{ended}");
        folder.write(&format!("a/{file}"), text);
    }
    for file in ["summary.json", "answer.npz"] {
        let (there, away) = (folder.join(format!("a/{file}")), folder.join("away"));
        fs::rename(&there, &away).unwrap();
        folder.ends("verify a", 4, &format!("there is no {file}"));
        fs::rename(&away, &there).unwrap();
    }
    let answer = fs::read(folder.join("a/answer.npz")).unwrap();
    let mut damaged = answer.clone();
    damaged[answer.len() / 2] ^= 1;
    fs::write(folder.join("a/answer.npz"), damaged).unwrap();
    folder.ends("verify a", 4, "answer.npz is not the answer that the run comes to");
    fs::write(folder.join("a/answer.npz"), answer).unwrap();

    // The folder of a killed run: rows may be ahead of the log, and the last one cut off.
    let rows = folder.read("a/metrics.csv");
    fs::remove_file(folder.join("a/metrics.csv")).unwrap();
    folder.write("a/metrics.csv.part", format!("{rows}61,0.5,0.5\n6"));
    folder.succeeds("verify a");
    folder.write("a/metrics.csv.part", format!("{rows}60,0.5,0.5\n"));
    folder.ends("verify a", 4, "the row of round 60 in metrics.csv");
    folder.write("a/metrics.csv", rows);

    // Another seed gives other states.
    let scenario = folder.read("a/scenario.toml").replace("seed = 1\n", "seed = 2\n");
    folder.write("a/scenario.toml", &scenario);
    folder.ends("verify a", 4, "error: agent 0 differs in round 0: its logged digest is ");

    // So does another number of agents.
    folder.write("a/scenario.toml", scenario.replace("agents = 10\n", "agents = 12\n"));
    folder.ends("verify a", 2, "round 0 has 10 digests, and 12 agents have one");
}

/// Views of many agents are logged less often than rows.
#[test]
fn a_run_of_many_agents_is_compared_to_its_end() {
    let folder = Folder::new();
    folder.succeeds("run --agents 40 --rounds 31 --error-below 0 --out a");
    assert_contains(&folder.succeeds("verify a").stdout, "32 rows of metrics.csv equal, summary.json too");
}

#[test]
fn a_run_on_boards_can_be_executed_again_and_compared() {
    let folder = Folder::new();
    run(&folder, "boards", "--boards qemu:5,native:5");
    is_verified(&folder, "boards");
}

#[test]
fn the_frames_of_the_first_rounds_are_compared() {
    let folder = Folder::new();
    // Until there is no room for another round.
    run(&folder, "a", "--sealed false --log-frames-mb 0.1");
    let printed = folder.succeeds("verify a").stdout;
    let frames: u32 = printed.split(" and ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((200..500).contains(&frames), "{printed}");
}

#[test]
fn a_single_flipped_bit_in_a_log_is_found() {
    let folder = Folder::new();
    run(&folder, "a", "");
    let log = folder.join("a/run.mcap");
    let bytes = fs::read(&log).unwrap();
    let digest = bytes.windows(10).rposition(|window| window == b"\"digest\":[").unwrap();
    let mut damaged = bytes.clone();
    damaged[digest + 10] ^= 1;
    fs::write(&log, damaged).unwrap();
    folder.ends("verify a", 2, "a/run.mcap is damaged after round ");
    folder.ends("report a", 2, "Chunk CRC failed");
    for length in [0, bytes.len() / 2] {
        fs::write(&log, &bytes[..length]).unwrap();
        folder.ends("verify a", 2, "a: the log is empty or cut off\nhelp: ");
    }
}

#[test]
fn what_is_no_run_is_refused() {
    let folder = Folder::new();
    fs::create_dir(folder.join("notes")).unwrap();
    folder.ends("report notes", 2, "notes is no run folder: ");
    folder.ends("verify notes", 2, "notes is no run folder: it has no scenario.toml\nhelp: ");
    folder.ends("verify nowhere", 2, "there is no run nowhere\nhelp: ");
    fs::create_dir_all(folder.join("sweep/scenarios")).unwrap();
    folder.ends("verify sweep", 2, "sweep is the folder of a sweep\nhelp: name one of its runs");
    let none = "there is no folder nowhere: no run was kept there yet\nhelp: `fabswarm run` keeps";
    folder.ends("runs nowhere", 2, none);
}

#[test]
fn reports_need_nothing_else() {
    let folder = Folder::new();
    run(&folder, "a", "");
    run(&folder, "b", "--seed 2");
    let report = folder.read("a/report.html");
    for part in ["Run a", "max-rounds", "class=\"line", "lost: iid</th>", "Agents after round 60"] {
        assert_contains(&report, part);
    }
    // The name of SVG's namespace is no address.
    let addresses = report.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!addresses.contains("http://") && !addresses.contains("https://") && !report.contains("<script"));
    let rebuilt = folder.succeeds("report a").stdout;
    assert_eq!(rebuilt, "a/report.html\n");
    assert_eq!(folder.read("a/report.html"), report);

    folder.succeeds("report a b --out both.html");
    let both = folder.read("both.html");
    assert!(both.contains("<th scope=\"row\">seed</th><td>1</td><td>2</td>"), "{both}");
}

#[test]
fn runs_are_listed_and_cleaned() {
    let folder = Folder::new();
    run(&folder, "runs/0001-a", "");
    run(&folder, "runs/0002-b", "--seed 2 --agents 12");
    fs::create_dir(folder.join("runs/notes")).unwrap();
    let listed = folder.succeeds("runs").stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(
        lines[0].starts_with("run ") && lines[1].starts_with("runs/0001-a  policy-evaluation"),
        "{lines:?}"
    );
    let only = folder.succeeds("runs --only 0002 --sort error").stdout;
    assert!(only.contains("runs/0002-b") && !only.contains("0001"));
    let planned = folder.succeeds("runs clean --keep 1").stdout;
    assert_contains(&planned, "add --yes");
    assert!(folder.join("runs/0001-a").exists());
    folder.succeeds("runs clean --keep 1 --yes");
    assert!(!folder.join("runs/0001-a").exists());
    assert!(folder.join("runs/0002-b").exists() && folder.join("runs/notes").exists());
}

#[test]
#[cfg(not(feature = "live"))]
fn a_build_without_the_page_says_how_to_get_it() {
    let folder = Folder::new();
    for line in ["run --live", "show a"] {
        folder.refuses(line, "help: add the feature, `cargo run --release --features live -- …`");
    }
}
