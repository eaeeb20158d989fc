//! Output, refusals and hints of the `fabswarm` command, beside running.

use crate::support::{Folder, Running, assert_contains};
use rustix::process::Signal;
use std::fs;

#[test]
fn a_closed_output_is_no_panic_and_a_full_one_is_told() {
    let folder = Folder::new();
    let closed = folder.shell("{ \"$FABSWARM\" run --out closed; echo $? >&2; } | true");
    assert!(closed.stderr.ends_with("0\n"), "{closed}");
    assert!(folder.join("closed/summary.json").exists());
    for command in ["run --print-scenario", "run --rounds 5 --error-below 0 --out full", "data list"] {
        let full = folder.shell(&format!("\"$FABSWARM\" {command} >/dev/full"));
        full.check(5, "error: cannot write to standard output: ");
    }
}

#[test]
fn a_disk_that_fills_up_during_a_run_is_no_bad_input() {
    let folder = Folder::new();
    let line = "trap '' XFSZ; ulimit -f 60; exec \"$FABSWARM\" run --rounds 2000 --error-below 0 --out big";
    folder.shell(line).check(5, "error: cannot write big/metrics.csv: ");
    assert!(folder.join("big/metrics.csv.part").exists());
}

/// Twice, as `timeout -s INT` does; the second comes too late where the run has ended.
#[test]
fn signals_keep_what_was_recorded() {
    let folder = Folder::new();
    for (signal, out) in [(Signal::INT, "interrupted"), (Signal::TERM, "terminated")] {
        let endless = "run --rounds 4000000000 --error-below 0 --metrics-every 1000 --out";
        let mut run = Running::start(folder.fabswarm(&format!("{endless} {out}")));
        run.wait_for("a row", |_| folder.last_round(out) > 0);
        run.signal(signal);
        run.signal(signal);
        run.ends().check(130, "what was recorded until then is kept");
        let (summary, metrics) = (folder.summary(out), folder.read(&format!("{out}/metrics.csv")));
        assert_eq!(summary["stopped_because"], "interrupted");
        let last = metrics.lines().last().unwrap().split(',').next().unwrap();
        assert_eq!(last, summary["rounds"].to_string());
    }
}

#[test]
fn measurements_that_never_end_are_refused() {
    let folder = Folder::new();
    for seconds in ["nan", "inf", "-1"] {
        folder.ends(&format!("bench --seconds={seconds}"), 2, "from 0 to 3600");
    }
    folder.ends("bench large mlp --agents 0", 2, "0 is not in 1..");
}

#[test]
fn short_help_fits_a_screen_and_long_help_has_every_key_and_the_defaults_of_its_command() {
    let folder = Folder::new();
    for (command, algorithms) in [("run", "ledger, fab, subgradient-push"), ("train", "ledger, fab]")] {
        let short = folder.succeeds(&format!("{command} -h")).stdout;
        assert!(short.lines().count() < 40, "{short}");
        for flag in ["--seed", "--agents", "--algorithm", "--topology", "--iid-loss", "--out", "--quiet"] {
            assert!(short.contains(&format!("{flag} ")), "{flag} is not in\n{short}");
        }
        assert!(!short.contains("--eta-x"), "{short}");
        let long = folder.succeeds(&format!("{command} --help")).stdout;
        let printed = folder.succeeds(&format!("{command} --print-scenario")).stdout;
        let scenario: toml_edit::DocumentMut = printed.parse().unwrap();
        let flags = long.lines().filter(|line| line.trim_start().starts_with("--")).count();
        let keys: usize =
            scenario.iter().map(|(_, item)| item.as_table().map_or(1, toml_edit::Table::len)).sum();
        assert!(flags >= keys, "{flags} flags for {keys} keys");
        assert!(long.contains(&format!("[values: {algorithms}")), "{long}");
        let words = long.split_whitespace().collect::<Vec<_>>().join(" ");
        for name in ["eta_x", "eta_y", "lambda", "edge_probability"] {
            let value = printed.lines().find_map(|line| line.strip_prefix(&format!("{name} = "))).unwrap();
            let (_, after) = words.split_once(&format!("--{} <", name.replace('_', "-"))).unwrap();
            let shown = after.split("[default: ").nth(1).unwrap().split(']').next();
            assert_eq!(shown, Some(value), "{command} {name}");
        }
    }
}

#[test]
fn what_does_not_exist_is_answered_with_what_does() {
    let folder = Folder::new();
    for (line, help) in [
        ("run --learning-rate 1", "did you mean `--eta-x`, `--eta-y` or `--eta-z`?"),
        ("train --rounds 5", "did you mean `--epochs`?"),
        ("run --epochs 5", "it is a flag of `fabswarm train`"),
        ("run --nodes 5", "did you mean `--agents`?"),
        ("--agnets 5", "did you mean `--agents`?"),
        ("run --states 5", "did you mean `--policy-evaluation-states`?"),
        ("run --verbose", "`fabswarm run --help` lists all flags"),
        ("rum", "did you mean `fabswarm run`?"),
        ("run --silent", "did you mean `--quiet`?"),
        ("run --trace x.json", "did you mean `--topology` or `--graphs`?"),
        ("train --rho 1", "did you mean `--dirichlet-alpha`?"),
        ("run --seed 1.5", "give a whole number instead of a number with a decimal point"),
        ("run --recorded a --snapshots b --precision f16", "choose f32, f64"),
    ] {
        let refused = folder.ends(line, 2, "");
        let last = refused.stderr.lines().last().unwrap();
        assert!(last.starts_with("help: ") && last.contains(help), "{line}: {refused}");
    }
    folder.write("twice.toml", "version = 1\nseed = 3\n\nseed = 4\n");
    folder.refuses("run twice.toml", "error: twice.toml:4: `seed` is set twice, first in line 2\nhelp: ");
}

#[test]
fn quiet_leaves_errors_alone() {
    let folder = Folder::new();
    let nothing = |line: &str| {
        let quiet = folder.succeeds(line);
        assert_eq!((&*quiet.stdout, &*quiet.stderr), ("", ""));
    };
    nothing("run --rounds 5 --error-below 0 --width byte --crashes 3@99+5 --quiet --out quiet");
    assert!(folder.join("quiet/summary.json").exists());
    let failed = folder.ends("run --rounds 5 -q --out failed", 1, "error: the distance to solution is ");
    assert_eq!(failed.stdout, "");
    nothing("sweep run --rounds 5 --error-below 0 --seed 1,2 --quiet");
    assert_contains(&folder.succeeds("run --print-scenario --quiet").stdout, "version = 1");
}

#[test]
fn advice_for_a_swarm_that_diverges_helps() {
    let folder = Folder::new();
    let published = "run --normalise-by-lambda false";
    let diverged = folder.ends(&format!("{published} --out wild"), 3, "divide the steps by lambda = 60, ");
    let (_, advice) = diverged.stderr.rsplit_once("lambda = 60, ").unwrap();
    folder.succeeds(&format!("{published} {advice} --out tame"));
}

#[test]
fn a_file_alone_is_a_run_and_a_flag_of_the_command_is_none() {
    let folder = Folder::new();
    assert_contains(&folder.succeeds("--version").stdout, concat!("fabswarm ", env!("CARGO_PKG_VERSION")));
    assert_contains(&folder.succeeds("--help").stdout, "Usage: fabswarm [COMMAND]");
    folder.write("mine.toml", "version = 1\nswarm.rounds = 3\nswarm.agents = 7\nstop.error_below = 0\n");
    let printed = folder.succeeds("mine.toml --agents 1 --out mine").stdout;
    assert_contains(&printed, "1 agent, policy-evaluation, ledger, paper topology, seed 1");
    assert_contains(&printed, "3 sent; 0 of their copies lost, 0 refused");
}

#[test]
fn keys_in_vain_are_named() {
    let folder = Folder::new();
    let print = |line: &str| {
        let ended = folder.succeeds(&format!("{line} --print-scenario"));
        (ended.stdout, ended.stderr)
    };
    let (whole, notes) = print("run");
    assert_eq!(notes, "");
    folder.write("whole.toml", whole);
    assert_eq!(print("run whole.toml --seed 3").1, "");
    let vain = "note: without effect in this run: algorithm.give_up_after, frames.width, motion.pattern\n";
    assert_eq!(print("run --algorithm fab --width byte --give-up-after 5 --pattern orbit").1, vain);
    let own = "the file keeps its own algorithm.penalty, algorithm.lambda, algorithm.eta_x, algorithm.eta_y, algorithm.eta_z: ";
    assert_contains(&print("run whole.toml --problem hyper-cleaning").1, own);
    folder.write("cleaning.toml", print("run --problem hyper-cleaning").0);
    let (_, kept) = print("run cleaning.toml --problem policy-evaluation");
    assert_contains(&kept, "the file keeps its own algorithm.penalty, algorithm.lambda, algorithm.eta_x, ");
    assert_eq!(print("run cleaning.toml").1, "");
    folder.write("boards.toml", "version = 1\nswarm.boards = \"qemu\"\n");
    assert_eq!(print("train boards.toml").1, "note: without effect in this run: swarm.boards\n");
}

#[test]
fn outages_that_a_run_never_reaches_are_named() {
    let folder = Folder::new();
    let late =
        folder.succeeds("run --rounds 100 --frozen 2@100+5 --crashes '3@99+5, 4@100+5' --print-scenario");
    let note =
        "note: these outages begin after the last of 100 rounds: faults.frozen 2@100, faults.crashes 4@100\n";
    assert_eq!(late.stderr, note);
    let early = "before these outages began: faults.radio_off 3@19000\nhelp: ";
    folder.ends("run --radio-off 3@19000+10 --out early", 0, early);
}

#[test]
fn graphs_lie_beside_their_scenario() {
    let folder = Folder::new();
    fs::create_dir(folder.join("inner")).unwrap();
    folder.write("inner/trace.json", r#"{"n": 2, "graphs": ["33"]}"#);
    let scenario = "version = 1\nswarm.agents = 2\nswarm.rounds = 3\nstop.error_below = 0\n\
                    network.topology = \"recorded\"\nnetwork.graphs = \"trace.json\"\n";
    folder.write("inner/scenario.toml", scenario);
    folder.succeeds("run inner/scenario.toml --out first");
    let mut again = folder.fabswarm("run ../first/scenario.toml --out again");
    assert!(again.current_dir(folder.join("inner")).output().unwrap().status.success());
}

#[test]
fn what_does_not_fit_the_memory_is_refused_before_anything_is_made() {
    let folder = Folder::new();
    for arguments in
        ["--agents 1000000 --topology complete", "--agents 20000 --topology erdos-renyi --rounds 100"]
    {
        let refused = folder.shell(&format!("ulimit -v 3000000; \"$FABSWARM\" run {arguments}"));
        refused.check(2, " agents fit");
        assert_eq!(folder.names("."), [""; 0], "something was written");
    }
}
