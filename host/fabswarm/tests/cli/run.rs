//! `fabswarm run` seen from outside.

use fabswarm_sim::scenario;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn fabswarm(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    fabswarm(folder).arg("run").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[track_caller]
fn assert_refused(folder: &Path, arguments: &[&str], expected: &str) {
    let before = names(folder);
    let output = run(folder, arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(expected), "{message}\ndoes not contain\n{expected}");
    assert!(message.matches("os error").count() <= 1, "its cause is told twice: {message}");
    assert_eq!(names(folder), before, "something was written");
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn summary(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(folder.join("summary.json")).unwrap()).unwrap()
}

#[test]
fn a_bare_command_runs_the_default_scenario_into_a_numbered_folder() {
    let folder = tempfile::tempdir().unwrap();
    let output = fabswarm(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("runs/0001-policy-evaluation"));
    let run = folder.path().join("runs/0001-policy-evaluation");
    assert_eq!(
        names(&run),
        [
            "answer.npz",
            "convergence.svg",
            "metrics.csv",
            "metrics.parquet",
            "report.html",
            "run.mcap",
            "scenario.toml",
            "summary.json"
        ]
    );
    let summary = summary(&run);
    assert_eq!(summary["stopped_because"], "converged");
    assert_eq!(summary["agents"], 10);
    assert!(
        summary["rounds_to_one_percent_distance"].as_u64().unwrap() + 200
            == summary["rounds"].as_u64().unwrap()
    );
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = |out: &str, seed: &str| {
        assert!(run(folder.path(), &["--seed", seed, "--out", out]).status.success());
        fs::read(folder.path().join(out).join("metrics.csv")).unwrap()
    };
    let first = metrics("a", "7");
    assert_eq!(first, metrics("b", "7"));
    assert_ne!(first, metrics("c", "8"));
}

#[test]
fn a_run_is_repeated_from_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), &["--seed", "5", "--agents", "6", "--out", "first"]).status.success());
    let output = run(folder.path(), &["first/scenario.toml"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let metrics = |run: &str| fs::read(folder.path().join(run).join("metrics.csv")).unwrap();
    assert_eq!(metrics("first"), metrics("runs/0001-policy-evaluation"));
}

#[test]
fn what_is_printed_is_a_scenario_that_prints_itself() {
    let folder = tempfile::tempdir().unwrap();
    let default = run(folder.path(), &["--print-scenario"]);
    let (printed, file) = (text(&default.stdout), include_str!("../../../scenario/src/default.toml"));
    assert!(file.starts_with(printed), "it prints the default scenario without the keys of other commands");

    let changed = run(folder.path(), &["--eta-x", "0.25", "--topology", "ring", "--print-scenario"]);
    assert!(text(&changed.stdout).contains("# Step size of x, the upper decision.\neta_x = 0.25\n"));
    assert!(text(&changed.stdout).contains("topology = \"ring\"\n"));
    fs::write(folder.path().join("changed.toml"), &changed.stdout).unwrap();
    let again = run(folder.path(), &["changed.toml", "--print-scenario"]);
    assert_eq!(text(&again.stdout), text(&changed.stdout));
}

/// Sets every key by its flag and by a file, to a value that is not its default, and compares.
#[test]
fn every_flag_is_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let keys = scenario::ScenarioCommand::ALL
        .into_iter()
        .flat_map(|command| command.keys().map(move |key| (command, key)));
    for (command, key) in keys.filter(|(_, key)| key.path != "version") {
        let (flag_value, file_value) = match (key.choices, key.default.as_str()) {
            (Some(choices), _) => {
                let word =
                    choices.iter().find(|word| format!("\"{word}\"") != key.default).unwrap_or(&choices[0]);
                ((*word).to_owned(), format!("\"{word}\""))
            }
            (None, "true") => ("false".to_owned(), "false".to_owned()),
            (None, "false") => ("true".to_owned(), "true".to_owned()),
            _ if ["faults.radio_off", "faults.frozen", "faults.crashes"].contains(&key.path.as_str()) => {
                ("3@200+50".to_owned(), "\"3@200+50\"".to_owned())
            }
            _ if key.path == "swarm.boards" => ("native".to_owned(), "\"native\"".to_owned()),
            _ if key.path == "radio.bandwidth_khz" => ("250".to_owned(), "250".to_owned()),
            _ if key.path == "faults.burst_rounds" => ("2.5".to_owned(), "2.5".to_owned()),
            _ if key.path == "intruder.forged_fragments" => ("2".to_owned(), "2".to_owned()),
            (None, default) if default.starts_with('"') => {
                ("elsewhere".to_owned(), "\"elsewhere\"".to_owned())
            }
            (None, default) if default.contains('.') => ("0.4375".to_owned(), "0.4375".to_owned()),
            (None, _) => ("7".to_owned(), "7".to_owned()),
        };
        fs::write(folder.path().join("key.toml"), format!("version = 1\n{} = {file_value}\n", key.path))
            .unwrap();
        let print = |arguments: &[&str]| {
            fabswarm(folder.path()).arg(command.name()).args(arguments).output().unwrap()
        };
        let by_file = print(&["key.toml", "--print-scenario"]);
        let by_flag = print(&[&format!("--{}", key.flag), &flag_value, "--print-scenario"]);
        assert!(by_file.status.success(), "{}: {}", key.path, text(&by_file.stderr));
        assert_eq!(text(&by_flag.stdout), text(&by_file.stdout), "{}", key.path);
        assert!(text(&by_flag.stdout).contains(&format!("{} = {file_value}", key.name())), "{}", key.path);
    }
}

#[test]
fn bad_scenarios_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |content: &str, expected: &str| {
        fs::write(folder.path().join("bad.toml"), content).unwrap();
        assert_refused(folder.path(), &["bad.toml"], expected);
    };
    refused(
        "version = 1\n[swarm]\nagent = 3\n",
        "error: bad.toml:3: there is no key `swarm.agent`\nhelp: did you mean `swarm.agents`?",
    );
    refused(
        "version = 1\n[swarm]\nagents = \"3\"\n",
        "bad.toml:3: swarm.agents = \"3\" has the wrong type\nhelp: give a whole number",
    );
    refused(
        "version = 1\n[algorithm]\neta_x = -0.1\n",
        "bad.toml:3: algorithm.eta_x = -0.1 is out of range\nhelp: give a number above 0",
    );
    refused(
        "version = 9\n",
        "bad.toml:1: the scenario has version 9, and this fabswarm reads version 1\nhelp: ",
    );
    refused("version = 1\n[swarm\n", "bad.toml:2: ");
    refused("", "bad.toml:1: the scenario has no version");
    assert_refused(folder.path(), &["missing.toml"], "cannot read the scenario missing.toml: ");
}

#[test]
fn bad_flags_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], expected: &str| assert_refused(folder.path(), arguments, expected);
    refused(
        &["--agents", "0"],
        "error: --agents: swarm.agents = 0 is out of range\nhelp: give a whole number from 1",
    );
    refused(
        &["--eta-x", "-0.5"],
        "--eta-x: algorithm.eta_x = -0.5 is out of range\nhelp: give a number above 0",
    );
    refused(&["--connectivity-window", "4294967295"], "help: give a whole number from 1 to 10000");
    refused(&["--hyper-tuning-classes", "257"], "help: give a whole number from 2 to 256");
    refused(&["--sensor-trust-sensors", "257"], "help: give a whole number from 1 to 256");
    refused(&["--edge-probability", "1.5"], "help: give a number from 0 to 1");
    refused(&["--eta-y", "NaN"], "--eta-y: algorithm.eta_y = nan is out of range");
    refused(
        &["--agents", "ten"],
        "--agents: swarm.agents = \"ten\" has the wrong type\nhelp: give a whole number instead of text",
    );
    refused(&["--topology", "rings"], "did you mean `ring`?");
    refused(&["--agent", "3"], "`fabswarm run` has no flag `--agent`\nhelp: did you mean `--agents`?");
}

#[test]
fn what_would_not_fit_or_mean_anything_is_refused_before_it_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], expected: &str| assert_refused(folder.path(), arguments, expected);
    let sizes = ["--hyper-tuning-features", "100000", "--hyper-tuning-train-samples", "100000"];
    let far_too_large = [&["--problem", "hyper-tuning", "--agents", "100000"], &sizes[..]].concat();
    refused(&far_too_large, " GB are free\nhelp: ");
    refused(
        &["--policy-evaluation-regularisation", "0", "--policy-evaluation-features", "21"],
        "more features than states leave more than one solution\nhelp: ",
    );
    let boards = |places: &str, expected: &str| refused(&["--boards", places], expected);
    boards("in-process:3", "boards = \"in-process:3\" places 3 agents, but the swarm has 10");
    boards("native:18446744073709551615", "places 18446744073709551615 agents");
}

#[test]
fn a_network_that_falls_apart_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--topology", "erdos-renyi", "--edge-probability", "0.01", "--connectivity-window", "2"];
    assert_refused(folder.path(), &arguments, "the network is not connected: information from agent");
}

#[test]
fn folders_that_are_taken_or_cannot_be_made_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("taken")).unwrap();
    fs::write(folder.path().join("taken/notes.txt"), "mine").unwrap();
    fs::write(folder.path().join("file"), "mine").unwrap();
    assert_refused(folder.path(), &["--out", "taken"], "the output folder taken is not empty\nhelp: ");
    assert_refused(folder.path(), &["--out", "file"], "cannot use file as the output folder: ");
    assert_refused(folder.path(), &["--out", "file/run"], "cannot use file/run as the output folder: ");
    assert_eq!(names(&folder.path().join("taken")), ["notes.txt"]);
}

#[test]
fn too_few_rounds_end_with_code_one_and_a_whole_folder() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--rounds", "20", "--out", "short"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr)
            .contains("after all 20 rounds, and the scenario asks for less than 0.01\nhelp: ")
    );
    assert_eq!(summary(&folder.path().join("short"))["stopped_because"], "max-rounds");
    assert!(run(folder.path(), &["--rounds", "20", "--error-below", "0", "--out", "all"]).status.success());
}

#[test]
fn divergence_is_diagnosed_and_keeps_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let diverged = |arguments: &[&str], out: &str, expected: [&str; 2]| {
        let output = fabswarm(folder.path()).args(arguments).args(["--out", out]).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{message}");
        for part in expected.into_iter().chain(["help: lower eta_x, eta_y and eta_z by the same factor"]) {
            assert!(message.contains(part), "{message}\ndoes not contain\n{part}");
        }
        assert!(!message.contains("raise swarm.rounds"), "{message}");
        let run = folder.path().join(out);
        assert_eq!(summary(&run)["stopped_because"], "diverged");
        assert!(run.join("convergence.svg").exists() && run.join("metrics.parquet").exists());
    };
    diverged(&["--eta-y", "60"], "integers", ["the gradient of ", "left the range of the exact ledger"]);
    diverged(&["--eta-y", "60", "--algorithm", "fab"], "floats", ["of agent ", "is no longer finite"]);
    let growing = ["--eta-y", "60", "--algorithm", "fab", "--rounds", "5"];
    diverged(&growing, "growing", ["diverged: the distance to solution grew from 1.0e0 to ", " in 5 rounds"]);
}

#[test]
fn rings_bring_steps_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    for (topology, algorithm) in [("ring", "ledger"), ("reversed-ring", "ledger"), ("ring", "fab")] {
        for agents in ["10", "30"] {
            let arguments = ["--topology", topology, "--algorithm", algorithm, "--agents", agents];
            let output =
                fabswarm(folder.path()).args(arguments).args(["--sealed", "false"]).output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        }
    }
}

#[test]
#[cfg(unix)]
fn ctrl_c_keeps_what_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let child = fabswarm(folder.path())
        .args(["--rounds", "4000000000", "--error-below", "0", "--metrics-every", "1000", "--out", "long"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let run = folder.path().join("long");
    // The listener for Ctrl-C stands before the first rows reach the disk.
    let begun = Instant::now();
    while !fs::metadata(run.join("metrics.csv.part")).is_ok_and(|file| file.len() > 0) {
        assert!(begun.elapsed() < Duration::from_secs(60), "no row reached the disk");
        std::thread::sleep(Duration::from_millis(10));
    }
    // Twice, as `timeout -s INT` does; the second comes too late where the run has ended.
    let interrupt = || Command::new("kill").args(["-INT", &child.id().to_string()]).output().unwrap().status;
    assert!(interrupt().success());
    interrupt();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(text(&output.stderr).contains("what was recorded until then is kept"));
    let summary = summary(&run);
    assert_eq!(summary["stopped_because"], "interrupted");
    let metrics = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let last = metrics.lines().last().unwrap().split(',').next().unwrap();
    assert_eq!(last, summary["rounds"].to_string());
}

/// Everybody asked everybody to be let in, for ever.
#[test]
fn a_swarm_that_loses_all_its_memory_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let crashes: Vec<String> = (0..10).map(|agent| format!("{agent}@100+{} forgets", agent % 4)).collect();
    let output = run(folder.path(), &["--crashes", &crashes.join(", "), "--out", "anew"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(summary(&folder.path().join("anew"))["tracking_defect"], 0.0);
}

#[test]
fn frames_sent_are_one_an_agent_and_round_however_they_are_computed() {
    let folder = tempfile::tempdir().unwrap();
    for algorithm in ["ledger", "fab"] {
        let arguments =
            ["--algorithm", algorithm, "--rounds", "20", "--error-below", "0", "--out", algorithm];
        assert!(run(folder.path(), &arguments).status.success());
        assert_eq!(summary(&folder.path().join(algorithm))["frames_sent"], 200, "{algorithm}");
    }
}

/// Regression: the first view of such a swarm panicked.
#[test]
fn more_agents_than_frames_can_name_run_on_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let few = ["--agents", "1100", "--rounds", "20", "--edge-probability", "0.01", "--error-below", "0"];
    let output = run(folder.path(), &[&few[..], &["--out", "run"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// The table of `docs/hosts.md`.
#[test]
fn blocks_that_hear_each_other_seldom_take_more_rounds() {
    let folder = tempfile::tempdir().unwrap();
    let steps = ["--eta-x", "0.8", "--eta-y", "0.08", "--eta-z", "0.08", "--momentum", "0"];
    let start = |every: &'static str| {
        let blocks =
            ["run", "--blocks", "2", "--exchange-every", every, "--extra-rounds", "0", "--out", every];
        let mut command = fabswarm(folder.path());
        (every, command.args(blocks).args(steps).stdout(Stdio::null()).spawn().unwrap())
    };
    let rounds = ["1", "2", "4", "8", "16"].map(start).map(|(every, mut run)| {
        assert!(run.wait().unwrap().success());
        summary(&folder.path().join(every))["rounds_to_one_percent_distance"].as_u64().unwrap()
    });
    assert_eq!(rounds, [628, 674, 776, 1000, 1580]);
}

#[test]
fn every_problem_runs_with_its_own_defaults() {
    let folder = tempfile::tempdir().unwrap();
    // A problem of one's own is run by the program that brings it.
    let built_in = fabswarm_sim::scenario::ProblemKind::WORDS.iter().filter(|problem| **problem != "own");
    for problem in built_in {
        let arguments = ["--problem", problem, "--rounds", "50", "--error-below", "0", "--out", problem];
        let output = run(folder.path(), &arguments);
        assert!(output.status.success(), "{problem}: {}", text(&output.stderr));
        assert_eq!(summary(&folder.path().join(problem))["problem"], *problem);
    }
}

#[test]
fn a_problem_of_ones_own_needs_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--problem", "own"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(
        message.contains("problem.kind = \"own\"") && message.contains("docs/own-problem.md"),
        "{message}"
    );
}

#[test]
fn recorded_problems_are_replayed_and_bad_ones_named() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/tests/golden/fab_n3_static_ring.json");
    let folder = tempfile::tempdir().unwrap();
    let replay = |file: &str| run(folder.path(), &["--recorded", file, "--snapshots", "out.json"]);
    let output = replay(golden.to_str().unwrap());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let whole = std::fs::read_to_string(&golden).unwrap();
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let ours = parse(&std::fs::read_to_string(folder.path().join("out.json")).unwrap());
    assert_eq!(
        ours["snapshots"].as_array().unwrap().len(),
        parse(&whole)["snapshots"].as_array().unwrap().len()
    );
    assert_eq!(ours["phi"], parse(&whole)["phi"]);
    std::fs::remove_file(folder.path().join("out.json")).unwrap();

    let change = |key: &str, value: serde_json::Value| {
        let mut file = parse(&whole);
        file[key] = value;
        file.to_string()
    };
    let lone = serde_json::json!([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    let mut apart = parse(&whole);
    (apart["A"], apart["B"]) = (lone.clone(), lone);
    let mut late = parse(&whole);
    late["snapshots"][0]["k"] = 4_294_967_296u64.into();
    let mut wide = parse(&whole);
    (wide["A"], wide["B"]) = (serde_json::Value::Null, serde_json::Value::Null);
    (wide["row_mask_hex_digits"], wide["graphs"]) =
        (6_148_914_691_236_517_206u64.into(), [""].as_slice().into());
    for (bad, expected) in [
        (whole[..whole.len() / 2].to_owned(), "not a recorded problem"),
        (change("n", 4.into()), "`r` has 3 rows but needs 4"),
        (change("eta_x", (-1.0).into()), "`eta_x` is -1"),
        (change("phi", "no".into()), "not a recorded problem"),
        (change("A", serde_json::json!([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])), "sums to 1.5"),
        (late.to_string(), "`k` is 4294967296"),
        (wide.to_string(), "`graphs[0]` is 0 characters long"),
        (apart.to_string(), "no information from agent 0 reaches agent 1"),
    ] {
        std::fs::write(folder.path().join("bad.json"), bad).unwrap();
        let output = replay("bad.json");
        assert_eq!(output.status.code(), Some(2), "{expected}");
        assert!(text(&output.stderr).contains(expected), "{expected}: {}", text(&output.stderr));
        assert_eq!(names(folder.path()), ["bad.json"], "nothing half-written");
    }
}

#[test]
fn broken_books_end_the_run_with_a_code_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    // Without a seal a damaged running sum is taken for a genuine one.
    let output = run(
        folder.path(),
        &["--sealed", "false", "--bit-corruption", "0.05", "--rounds", "500", "--out", "a"],
    );
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{message}");
    assert!(message.contains("the books broke in round") && message.contains("that agent"), "{message}");
    assert!(message.contains("help: ") && message.contains("frames.sealed"), "{message}");
    let summary = summary(&folder.path().join("a"));
    assert_eq!(summary["stopped_because"], "books-broken");
    // By how much they are off.
    let defect = summary["tracking_defect"].as_f64().unwrap();
    assert!(defect > 0.0, "{defect}");
    let rows = std::fs::read_to_string(folder.path().join("a/metrics.csv")).unwrap();
    let last: Vec<&str> = rows.lines().last().unwrap().split(',').collect();
    assert_eq!(last[3].parse::<f64>().unwrap(), defect);
    assert_eq!(last[0].parse::<u64>().unwrap(), summary["rounds"].as_u64().unwrap() + 1);
}

#[test]
fn the_summary_says_what_waits_for_whom() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--rounds", "150", "--error-below", "0", "--out"];
    assert!(run(folder.path(), &[&arguments[..], &["well"]].concat()).status.success());
    let down = [&arguments[..], &["bereft", "--crashes", "3@50+1000"]].concat();
    assert!(run(folder.path(), &down).status.success());
    let mass = |run: &str, key: &str| summary(&folder.path().join(run))[key].as_f64().unwrap();
    assert!(mass("well", "mass_waiting") > 0.0);
    assert_eq!(mass("well", "mass_owed_to_gone"), 0.0);
    assert!(mass("bereft", "mass_owed_to_gone") > 0.0);
}
