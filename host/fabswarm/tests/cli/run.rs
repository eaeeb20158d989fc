//! `fabswarm run` seen from outside.

use crate::support::{Folder, assert_contains};
use fabswarm_sim::scenario;
use std::fs;

#[test]
fn a_bare_command_runs_the_default_scenario_into_a_numbered_folder() {
    let folder = Folder::new();
    assert_contains(&folder.succeeds("").stdout, "runs/0001-policy-evaluation");
    let run = "runs/0001-policy-evaluation";
    assert_eq!(
        folder.names(run),
        [
            "answer.npz",
            "convergence.svg",
            "metrics.csv",
            "report.html",
            "run.mcap",
            "scenario.toml",
            "summary.json"
        ]
    );
    // The tutorial shows it; `cp runs/0001-policy-evaluation/convergence.svg docs/` draws it anew.
    let tutorial = include_str!("../../../../docs/convergence.svg");
    let figure = folder.read(&format!("{run}/convergence.svg"));
    assert!(figure == tutorial, "docs/convergence.svg is of another run");
    let summary = folder.summary(run);
    assert_eq!((&summary["stopped_because"], &summary["agents"]), (&"converged".into(), &10.into()));
    let reached = summary["rounds_to_one_percent_distance"].as_u64().unwrap();
    assert_eq!(reached + 200, summary["rounds"].as_u64().unwrap());
}

#[test]
fn what_is_printed_is_a_scenario_that_prints_itself() {
    let folder = Folder::new();
    let print = |line: &str| folder.succeeds(&format!("run --print-scenario {line}")).stdout;
    let file = include_str!("../../../scenario/src/default.toml").split_inclusive('\n');
    let file: String = file.filter(|line| !line.starts_with("#:")).collect();
    // Without the keys of other commands.
    assert!(file.starts_with(&print("")));
    let changed = print("--eta-x 0.25 --topology ring");
    let comment = "# Step size of x, the upper decision; 0 keeps x as it starts, the control for the effect of learning it.";
    assert_contains(&changed, &format!("{comment}\neta_x = 0.25\n"));
    assert_contains(&changed, "topology = \"ring\"\n");
    folder.write("changed.toml", &changed);
    assert_eq!(print("changed.toml"), changed);
}

/// A value for a key that is not its default.
fn another_value(key: &scenario::ScenarioKey) -> String {
    if let Some(choices) = key.choices {
        let other = choices.iter().find(|word| format!("\"{word}\"") != key.default);
        return (*other.unwrap_or(&choices[0])).to_owned();
    }
    let value = match (key.path, key.default) {
        ("faults.radio_off" | "faults.frozen" | "faults.crashes", _) => "3@200+50",
        ("swarm.boards", _) => "native",
        ("radio.bandwidth_khz", _) => "250",
        ("faults.burst_rounds", _) => "2.5",
        ("intruder.forged_fragments", _) => "2",
        (_, "true") => "false",
        (_, "false") => "true",
        _ if key.kind == scenario::ValueKind::Text => "elsewhere",
        _ if key.kind == scenario::ValueKind::Float => "0.4375",
        _ => "7",
    };
    value.to_owned()
}

/// Sets every key by its flag and by a file, to a value that is not its default, and compares.
#[test]
fn every_flag_is_its_key() {
    let folder = Folder::new();
    let keys = scenario::ScenarioCommand::ALL
        .into_iter()
        .flat_map(|command| command.keys().map(move |key| (command.name(), key)));
    for (command, key) in keys.filter(|(_, key)| key.path != "version") {
        let value = another_value(key);
        let is_text = key.kind == scenario::ValueKind::Text;
        let in_file = if is_text { format!("\"{value}\"") } else { value.clone() };
        folder.write("key.toml", format!("version = 1\n{} = {in_file}\n", key.path));
        let print = |flags: &str| folder.succeeds(&format!("{command} {flags} --print-scenario")).stdout;
        let by_flag = print(&format!("--{} {value}", key.flag));
        assert_eq!(by_flag, print("key.toml"), "{}", key.path);
        assert_contains(&by_flag, &format!("{} = {in_file}", key.name()));
    }
}

#[test]
fn bad_scenarios_are_refused_with_a_remedy() {
    let folder = Folder::new();
    folder.write("bad.toml", "version = 1\n[swarm]\nagent = 3\n");
    let unknown = "error: bad.toml:3: there is no key `swarm.agent`\nhelp: did you mean `swarm.agents`?";
    folder.refuses("run bad.toml", unknown);
    folder.refuses("run missing.toml", "cannot read the scenario missing.toml: ");
}

#[test]
fn bad_flags_are_refused_with_a_remedy_before_anything_is_drawn() {
    let folder = Folder::new();
    for (flags, expected) in [
        ("--agents 0", "error: --agents: swarm.agents = 0 is out of range\nhelp: give a whole number from 1"),
        (
            "--eta-x -0.5",
            "--eta-x: algorithm.eta_x = -0.5 is out of range\nhelp: give a number of at least 0",
        ),
        ("--connectivity-window 4294967295", "help: give a whole number from 1 to 10000"),
        ("--hyper-tuning-classes 257", "help: give a whole number from 2 to 256"),
        ("--sensor-trust-sensors 257", "help: give a whole number from 1 to 256"),
        ("--edge-probability 1.5", "help: give a number from 0 to 1"),
        ("--eta-y NaN", "--eta-y: algorithm.eta_y = nan is out of range"),
        ("--eta-y inf", "--eta-y: algorithm.eta_y = inf is out of range"),
        ("--agent 3", "`fabswarm run` has no flag `--agent`\nhelp: did you mean `--agents`?"),
        ("--problem own", "docs/own-problem.md"),
        (
            "--problem hyper-tuning --agents 100000 --hyper-tuning-features 100000 \
             --hyper-tuning-train-samples 100000",
            " GB are free\nhelp: ",
        ),
        (
            "--policy-evaluation-regularisation 0 --policy-evaluation-features 21",
            "more features than states leave more than one solution\nhelp: ",
        ),
        ("--boards in-process:3", "boards = \"in-process:3\" places 3 agents, but the swarm has 10"),
        (
            "--topology erdos-renyi --edge-probability 0.01 --connectivity-window 2",
            "the network is not connected: information from agent",
        ),
        (
            "--topology erdos-renyi --rounds 20 --edge-probability 0.001",
            "or raise swarm.rounds (now 20), which is less than network.connectivity_window (30)",
        ),
    ] {
        folder.refuses(&format!("run {flags}"), expected);
    }
}

#[test]
fn folders_that_are_taken_or_cannot_be_made_are_refused() {
    let folder = Folder::new();
    fs::create_dir(folder.join("taken")).unwrap();
    folder.write("taken/notes.txt", "mine");
    folder.write("file", "mine");
    folder.refuses("run --out taken", "the output folder taken is not empty\nhelp: ");
    folder.refuses("run --out file", "cannot use file as the output folder: ");
    folder.refuses("run --out file/run", "cannot use file/run as the output folder: ");
    assert_eq!(folder.names("taken"), ["notes.txt"]);
}

#[test]
fn too_few_rounds_end_with_code_one_and_a_whole_folder() {
    let folder = Folder::new();
    let message = "after all 20 rounds, and the scenario asks for less than 0.01\nhelp: ";
    folder.ends("run --rounds 20 --out short", 1, message);
    assert_eq!(folder.summary("short")["stopped_because"], "max-rounds");
}

#[test]
fn divergence_is_diagnosed_and_keeps_the_folder() {
    let folder = Folder::new();
    for (flags, out, expected) in [
        ("", "integers", ["the gradient of ", "left the range of the exact ledger"]),
        ("--algorithm fab", "floats", ["of agent ", "is no longer finite"]),
        (
            "--algorithm fab --rounds 5",
            "growing",
            ["diverged: the distance to solution grew from 1.0e0 to ", " in 5 rounds"],
        ),
    ] {
        let advice = "by default here: begin with the default";
        let ended = folder.ends(&format!("run --eta-y 60 {flags} --out {out}"), 3, advice);
        expected.iter().for_each(|part| assert_contains(&ended.stderr, part));
        assert!(!ended.stderr.contains("raise swarm.rounds"), "{ended}");
        assert_eq!(folder.summary(out)["stopped_because"], "diverged");
        assert!(folder.names(out).contains(&"convergence.svg".to_owned()));
    }
}

#[test]
fn rings_bring_steps_of_their_own() {
    let folder = Folder::new();
    for flags in ["--topology ring", "--topology reversed-ring", "--topology ring --algorithm fab"] {
        for agents in [10, 30] {
            folder.succeeds(&format!("run {flags} --agents {agents} --sealed false"));
        }
    }
}

/// Everybody asked everybody to be let in, for ever.
#[test]
fn a_swarm_that_loses_all_its_memory_begins_anew() {
    let folder = Folder::new();
    let crashes: Vec<String> = (0..10).map(|agent| format!("{agent}@100+{} forgets", agent % 4)).collect();
    folder.succeeds(&format!("run --crashes '{}' --out anew", crashes.join(", ")));
    assert_eq!(folder.summary("anew")["tracking_defect"], 0.0);
}

#[test]
fn frames_sent_are_one_an_agent_and_round_however_they_are_computed() {
    let folder = Folder::new();
    for algorithm in ["ledger", "fab"] {
        folder
            .succeeds(&format!("run --algorithm {algorithm} --rounds 20 --error-below 0 --out {algorithm}"));
        assert_eq!(folder.summary(algorithm)["frames_sent"], 200, "{algorithm}");
    }
}

/// Regression: the first view of such a swarm panicked.
#[test]
fn more_agents_than_frames_can_name_run_on_arrays() {
    Folder::new().succeeds("run --agents 1100 --rounds 20 --edge-probability 0.01 --error-below 0");
}

/// The table of `docs/between-hosts.md`.
#[test]
fn blocks_that_hear_each_other_seldom_take_more_rounds() {
    let folder = Folder::new();
    let steps = "--eta-x 0.8 --eta-y 0.08 --eta-z 0.08 --momentum 0 --extra-rounds 0 --order combine-first --penalty one-sided --self-weight 0.98";
    let rounds = [1, 2, 4, 8, 16].map(|every| {
        folder.succeeds(&format!("run --blocks 2 --exchange-every {every} {steps} --out {every}"));
        folder.summary(&every.to_string())["rounds_to_one_percent_distance"].as_u64().unwrap()
    });
    assert_eq!(rounds, [628, 674, 776, 1000, 1580]);
}

#[test]
fn every_problem_runs_with_its_own_defaults() {
    let folder = Folder::new();
    // The program that brings a user's problem runs it.
    for problem in scenario::ProblemKind::WORDS.iter().filter(|problem| **problem != "own") {
        folder.succeeds(&format!("run --problem {problem} --rounds 50 --error-below 0 --out {problem}"));
        assert_eq!(folder.summary(problem)["problem"], *problem);
    }
}

#[test]
fn broken_books_end_the_run_with_a_code_of_their_own() {
    let folder = Folder::new();
    // Without a seal a damaged running sum is taken for a genuine one.
    let ended = folder.ends("run --sealed false --bit-corruption 0.05 --rounds 500 --out a", 6, "help: ");
    for part in ["the ledgers do not balance in round", "that agent", "frames.sealed"] {
        assert_contains(&ended.stderr, part);
    }
    let summary = folder.summary("a");
    assert_eq!(summary["stopped_because"], "books-broken");
    // By how much they are off.
    let defect = summary["tracking_defect"].as_f64().unwrap();
    assert!(defect > 0.0, "{defect}");
    let rows = folder.read("a/metrics.csv");
    let last: Vec<&str> = rows.lines().last().unwrap().split(',').collect();
    assert_eq!(last[3].parse::<f64>().unwrap(), defect);
    assert_eq!(last[0].parse::<u64>().unwrap(), summary["rounds"].as_u64().unwrap() + 1);
}

#[test]
fn the_summary_says_what_waits_for_whom() {
    let folder = Folder::new();
    folder.succeeds("run --rounds 150 --error-below 0 --out well");
    folder.succeeds("run --rounds 150 --error-below 0 --out bereft --crashes 3@50+1000");
    let mass = |run: &str, key: &str| folder.summary(run)[key].as_f64().unwrap();
    assert!(mass("well", "mass_waiting") > 0.0);
    assert_eq!(mass("well", "mass_owed_to_gone"), 0.0);
    assert!(mass("bereft", "mass_owed_to_gone") > 0.0);
}

#[test]
fn slow_x_does_not_stop_early_where_the_solution_is_unknown() {
    let folder = Folder::new();
    // The gradients of y and z are small after 500 rounds; that of x still has most of its way to go.
    let slow = "run --problem hyper-cleaning --eta-x 0.3 --rounds 1500 --out slow";
    folder.ends(slow, 1, "the gradient norm is");
    let ended = folder.succeeds("run --problem hyper-cleaning --out usual");
    assert!(ended.stdout.contains("stopped: gradient of x, of y and of z below 0.01"), "{ended}");
    assert_eq!(folder.summary("usual")["stopped_because"], "small-gradient");
    let ended = folder.succeeds("run --problem hyper-cleaning --eta-x 0 --out frozen");
    assert!(ended.stdout.contains("stopped: gradient of y and of z below 0.01"), "{ended}");
}
