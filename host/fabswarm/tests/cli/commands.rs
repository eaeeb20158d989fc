//! What the `fabswarm` command does beside running: what it prints, refuses and tells.

use crate::outcome::{assert_ends, text};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn fabswarm(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn output(folder: &Path, arguments: &[&str]) -> Output {
    fabswarm(folder).args(arguments).output().unwrap()
}

/// Runs a line of the shell in which `$FABSWARM` is the command.
fn shell(folder: &Path, line: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env("FABSWARM", env!("CARGO_BIN_EXE_fabswarm"));
    shell.current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_closed_output_is_no_panic_and_a_full_one_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let closed = shell(folder.path(), "{ \"$FABSWARM\" run --out closed; echo $? >&2; } | true");
    assert!(text(&closed.stderr).ends_with("0\n"), "{}", text(&closed.stderr));
    assert!(folder.path().join("closed/summary.json").exists());
    for command in ["run --print-scenario", "run --rounds 5 --error-below 0 --out full", "data list"] {
        let full = shell(folder.path(), &format!("\"$FABSWARM\" {command} >/dev/full"));
        assert_ends(&full, 5, "error: cannot write to standard output: ");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_fills_up_during_a_run_is_no_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let line = "trap '' XFSZ; ulimit -f 60; exec \"$FABSWARM\" run --rounds 2000 --error-below 0 --out big";
    let filled = shell(folder.path(), line);
    assert_ends(&filled, 5, "error: cannot write big/metrics.csv: ");
    assert!(folder.path().join("big/metrics.csv.part").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn sigterm_keeps_what_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let line = "\"$FABSWARM\" run --rounds 4000000000 --error-below 0 --metrics-every 1000 --out long & \
                until [ -s long/metrics.csv.part ]; do sleep 0.05; done; kill -TERM $!; wait $!";
    assert_ends(&shell(folder.path(), line), 130, "what was recorded until then is kept");
    assert!(folder.path().join("long/summary.json").exists());
}

#[test]
fn measurements_that_never_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for seconds in ["nan", "inf", "-1"] {
        assert_ends(&output(folder.path(), &["bench", &format!("--seconds={seconds}")]), 2, "from 0 to 3600");
    }
    assert_ends(&output(folder.path(), &["bench", "large", "mlp", "--agents", "0"]), 2, "0 is not in 1..");
}

#[test]
fn help_shows_the_defaults_of_its_command() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["run", "train"] {
        let help = output(folder.path(), &[command, "--help"]);
        let help: String = text(&help.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        let printed = output(folder.path(), &[command, "--print-scenario"]);
        for name in ["eta_x", "eta_y", "lambda", "edge_probability"] {
            let printed = text(&printed.stdout);
            let value = printed.lines().find_map(|line| line.strip_prefix(&format!("{name} = "))).unwrap();
            let flag = format!("--{} <", name.replace('_', "-"));
            let (_, after) = help.split_once(&flag).unwrap();
            let shown = after.split("[default: ").nth(1).unwrap().split(']').next();
            assert_eq!(shown, Some(value), "{command} {name}");
        }
    }
}

#[test]
fn short_help_fits_a_screen_and_long_help_has_every_key() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["run", "train"] {
        let short = output(folder.path(), &[command, "-h"]);
        let short = text(&short.stdout);
        assert!(short.lines().count() < 40, "{short}");
        for flag in ["--seed", "--agents", "--algorithm", "--topology", "--iid-loss", "--out", "--quiet"] {
            assert!(short.contains(&format!("{flag} ")), "{flag} is not in\n{short}");
        }
        assert!(!short.contains("--eta-x"), "{short}");
        let long = output(folder.path(), &[command, "--help"]);
        let long = text(&long.stdout);
        let printed = output(folder.path(), &[command, "--print-scenario"]);
        let scenario: toml_edit::DocumentMut = text(&printed.stdout).parse().unwrap();
        let flags = long.lines().filter(|line| line.trim_start().starts_with("--")).count();
        let keys: usize =
            scenario.iter().map(|(_, item)| item.as_table().map_or(1, toml_edit::Table::len)).sum();
        assert!(flags >= keys, "{flags} flags for {keys} keys");
        assert!(long.contains("[words: ledger, fab]"), "{long}");
    }
}

#[test]
fn what_does_not_exist_is_answered_with_what_does() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, help) in [
        (&["run", "--learning-rate", "1"][..], "did you mean `--eta-x`, `--eta-y` or `--eta-z`?"),
        (&["train", "--rounds", "5"], "did you mean `--epochs`?"),
        (&["run", "--epochs", "5"], "it is a flag of `fabswarm train`"),
        (&["run", "--nodes", "5"], "did you mean `--agents`?"),
        (&["--agnets", "5"], "did you mean `--agents`?"),
        (&["run", "--states", "5"], "did you mean `--policy-evaluation-states`?"),
        (&["run", "--verbose"], "`fabswarm run --help` lists all flags"),
        (&["rum"], "did you mean `fabswarm run`?"),
        (&["run", "--silent"], "did you mean `--quiet`?"),
        (&["run", "--trace", "x.json"], "did you mean `--topology` or `--graphs`?"),
        (&["train", "--rho", "1"], "did you mean `--dirichlet-alpha`?"),
        (&["run", "--seed", "1.5"], "give a whole number instead of a number with a decimal point"),
        (&["run", "--recorded", "a", "--snapshots", "b", "--precision", "f16"], "choose f32, f64"),
    ] {
        let refused = output(folder.path(), arguments);
        assert_ends(&refused, 2, "");
        let message = text(&refused.stderr);
        let last = message.lines().last().unwrap();
        assert!(last.starts_with("help: ") && last.contains(help), "{arguments:?}: {message}");
    }
    fs::write(folder.path().join("twice.toml"), "version = 1\nseed = 3\n\nseed = 4\n").unwrap();
    let twice = output(folder.path(), &["run", "twice.toml"]);
    assert_ends(&twice, 2, "error: twice.toml:4: `seed` is set twice, first in line 2\nhelp: ");
}

#[test]
fn quiet_leaves_errors_alone() {
    let folder = tempfile::tempdir().unwrap();
    let short = ["run", "--rounds", "5", "--error-below", "0", "--width", "byte", "--crashes", "3@99+5"];
    let quiet = fabswarm(folder.path()).args(short).args(["--quiet", "--out", "quiet"]).output().unwrap();
    assert_eq!((text(&quiet.stdout), text(&quiet.stderr)), ("", ""));
    assert!(quiet.status.success() && folder.path().join("quiet/summary.json").exists());
    let failed = output(folder.path(), &["run", "--rounds", "5", "-q", "--out", "failed"]);
    assert_ends(&failed, 1, "error: the distance to solution is ");
    assert_eq!(text(&failed.stdout), "");
    let swept = ["sweep", "run", "--rounds", "5", "--error-below", "0", "--seed", "1,2", "--quiet"];
    let swept = output(folder.path(), &swept);
    assert_eq!((text(&swept.stdout), text(&swept.stderr)), ("", ""));
    let printed = output(folder.path(), &["run", "--print-scenario", "--quiet"]);
    assert!(text(&printed.stdout).contains("version = 1"));
}

#[test]
fn advice_for_a_swarm_that_diverges_helps() {
    let folder = tempfile::tempdir().unwrap();
    let published = ["run", "--normalise-by-lambda", "false"];
    let diverged = fabswarm(folder.path()).args(published).args(["--out", "wild"]).output().unwrap();
    assert_ends(&diverged, 3, "divide the steps by lambda = 60, ");
    let (_, advice) = text(&diverged.stderr).rsplit_once("lambda = 60, ").unwrap();
    let advice: Vec<&str> = advice.split_whitespace().collect();
    let helped =
        fabswarm(folder.path()).args(published).args(&advice).args(["--out", "tame"]).output().unwrap();
    assert_ends(&helped, 0, "");
}

#[test]
fn a_file_alone_is_a_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.toml"), "version = 1\nswarm.rounds = 3\nstop.error_below = 0\n")
        .unwrap();
    let output = output(folder.path(), &["mine.toml", "--agents", "1", "--out", "mine"]);
    assert_ends(&output, 0, "");
    assert!(text(&output.stdout).contains("1 agent, policy-evaluation, ledger, paper topology, seed 1"));
    assert!(text(&output.stdout).contains("3 sent; 0 of their copies lost, 0 refused"));
}

#[test]
fn keys_in_vain_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let print = |arguments: &[&str]| {
        let output = fabswarm(folder.path()).args(arguments).arg("--print-scenario").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
    };
    let (whole, notes) = print(&["run"]);
    assert_eq!(notes, "");
    fs::write(folder.path().join("whole.toml"), whole).unwrap();
    assert_eq!(print(&["run", "whole.toml", "--seed", "3"]).1, "");
    let vain = ["run", "--algorithm", "fab", "--width", "byte", "--give-up-after", "5", "--pattern", "orbit"];
    assert_eq!(
        print(&vain).1,
        "note: without effect in this run: algorithm.give_up_after, frames.width, motion.pattern\n"
    );
    let (_, kept) = print(&["run", "whole.toml", "--problem", "hyper-cleaning"]);
    assert!(
        kept.contains(
            "the file keeps its own algorithm.lambda, algorithm.eta_x, algorithm.eta_y, algorithm.eta_z: "
        ),
        "{kept}"
    );
    let (whole, _) = print(&["run", "--problem", "hyper-cleaning"]);
    fs::write(folder.path().join("cleaning.toml"), whole).unwrap();
    let (_, kept) = print(&["run", "cleaning.toml", "--problem", "policy-evaluation"]);
    assert!(kept.contains("the file keeps its own algorithm.lambda, algorithm.eta_x, "), "{kept}");
    assert_eq!(print(&["run", "cleaning.toml"]).1, "");
    fs::write(folder.path().join("boards.toml"), "version = 1\nswarm.boards = \"qemu\"\n").unwrap();
    assert_eq!(print(&["train", "boards.toml"]).1, "note: without effect in this run: swarm.boards\n");
}

#[test]
fn outages_that_a_run_never_reaches_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let late = ["run", "--rounds", "100", "--crashes", "3@99+5, 4@100+5", "--print-scenario"];
    let note = "note: these outages begin after the last of 100 rounds: faults.crashes 4@100\n";
    assert_eq!(text(&output(folder.path(), &late).stderr), note);
    let converged = output(folder.path(), &["run", "--radio-off", "3@19000+10", "--out", "early"]);
    assert_ends(&converged, 0, "before these outages began: faults.radio_off 3@19000\nhelp: ");
}

#[test]
fn graphs_lie_beside_their_scenario() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("inner")).unwrap();
    fs::write(folder.path().join("inner/trace.json"), r#"{"n": 2, "graphs": ["33"]}"#).unwrap();
    let scenario = "version = 1\nswarm.agents = 2\nswarm.rounds = 3\nstop.error_below = 0\n\
                    network.topology = \"recorded\"\nnetwork.graphs = \"trace.json\"\n";
    fs::write(folder.path().join("inner/scenario.toml"), scenario).unwrap();
    assert_ends(&output(folder.path(), &["run", "inner/scenario.toml", "--out", "first"]), 0, "");
    let again = output(&folder.path().join("inner"), &["run", "../first/scenario.toml", "--out", "again"]);
    assert_ends(&again, 0, "");
}

#[test]
#[cfg(target_os = "linux")]
fn what_does_not_fit_the_memory_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in
        ["--agents 1000000 --topology complete", "--agents 20000 --topology erdos-renyi --rounds 100"]
    {
        let refused = shell(folder.path(), &format!("ulimit -v 3000000; \"$FABSWARM\" run {arguments}"));
        assert_ends(&refused, 2, " agents fit");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was written");
    }
}

#[test]
fn a_recorded_problem_is_checked_and_never_written_over() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/tests/golden");
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(golden.join(name)).unwrap()).unwrap()
    };
    let replay = |file: &serde_json::Value, out: &str| {
        fs::write(folder.path().join("self.json"), file.to_string()).unwrap();
        output(folder.path(), &["run", "--recorded", "self.json", "--snapshots", out])
    };
    let (ring, paper) = (read("fab_n3_static_ring.json"), read("fab_n10_paper.json"));
    assert_ends(
        &replay(&ring, "./self.json"),
        2,
        "--snapshots names the recorded file ./self.json itself\nhelp: ",
    );
    assert_eq!(fs::read_to_string(folder.path().join("self.json")).unwrap(), ring.to_string());

    let refused = |whole: &serde_json::Value, change: &dyn Fn(&mut serde_json::Value), expected: &str| {
        let mut file = whole.clone();
        change(&mut file);
        assert_ends(&replay(&file, "out.json"), 2, &format!("error: self.json: {expected}"));
    };
    refused(
        &ring,
        &|file| file["gamma"] = 2.into(),
        "`gamma` is 2 but must be at least 0 and below 1\nhelp: ",
    );
    refused(&paper, &|file| file["weights"] = "foo".into(), "`weights` is \"foo\" but must be \"uniform\"");
    refused(&ring, &|file| file["snapshots"] = serde_json::json!([]), "`snapshots` is empty");
    refused(
        &ring,
        &|file| file["snapshots"].as_array_mut().unwrap().reverse(),
        "`snapshots` is k = 1000 before",
    );
    refused(
        &ring,
        &|file| drop(file["snapshots"][0]["x"].as_array_mut().unwrap().pop()),
        "`snapshots[0].x` has 2 rows but needs 3",
    );
    let mut bare = ring;
    bare["snapshots"] = serde_json::json!([{"k": 5}]);
    let output = replay(&bare, "out.json");
    assert_ends(&output, 0, "");
    assert!(text(&output.stdout).contains("not compared"), "{}", text(&output.stdout));
}
