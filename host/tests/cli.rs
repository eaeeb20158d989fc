//! What the `fabswarm` command does beside running: what it prints, refuses and tells.

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

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[track_caller]
fn assert_ends(output: &Output, code: i32, message: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(message), "{}\ndoes not contain\n{message}", text(&output.stderr));
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
#[cfg(target_os = "linux")]
fn what_does_not_fit_the_memory_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in
        ["--agents 1000000 --topology complete", "--agents 20000 --topology erdos-renyi --rounds 100"]
    {
        let refused = shell(folder.path(), &format!("ulimit -v 3000000; \"$FABSWARM\" run {arguments}"));
        assert_ends(&refused, 2, " agents fit so");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was written");
    }
}
