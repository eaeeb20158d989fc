//! Every `fabswarm` command of the README, run as it stands there.

use std::process::{Command, Stdio};

const README: &str = include_str!("../../../../README.md");

#[test]
fn the_commands_of_the_readme_work() {
    let folder = tempfile::tempdir().unwrap();
    let scenarios = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    std::os::unix::fs::symlink(scenarios, folder.path().join("scenarios")).unwrap();
    let mut commands = 0;
    for line in README.lines().filter(|line| line.starts_with("cargo run --release")) {
        // What follows ` -- ` is for the command; features before it are for Cargo, and this build has them.
        let line = line.split('#').next().unwrap_or(line).trim();
        let arguments = line.split_once(" -- ").map_or("", |(_, arguments)| arguments.trim());
        if arguments == "bench" {
            // It fetches NumPy and takes a minute: not for every test run.
            continue;
        }
        let output = Command::new("sh")
            .args(["-eu", "-c", &format!("\"$FABSWARM\" {arguments}")])
            .env("FABSWARM", env!("CARGO_BIN_EXE_fabswarm"))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
        commands += 1;
    }
    assert!(commands >= 5, "the README shows only {commands} commands");
}

#[test]
fn the_scenario_of_the_readme_runs() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = README.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    std::fs::write(folder.path().join("mine.toml"), scenario).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_fabswarm"))
        .args(["run", "mine.toml", "--rounds", "10", "--error-below", "0"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}
