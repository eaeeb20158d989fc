//! Every `fabswarm` command of the README, run as it stands there.

use crate::support::Folder;

const README: &str = include_str!("../../../../README.md");

#[test]
fn the_commands_of_the_readme_work() {
    let folder = Folder::new();
    let scenarios = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    std::os::unix::fs::symlink(scenarios, folder.join("scenarios")).unwrap();
    let mut commands = 0;
    for line in README.lines().filter(|line| line.starts_with("cargo run --release")) {
        // What follows ` -- ` is for the command; features before it are for Cargo, and this build has them.
        let line = line.split('#').next().unwrap_or(line).trim();
        let arguments = line.split_once(" -- ").map_or("", |(_, arguments)| arguments.trim());
        if arguments == "bench" {
            // It fetches NumPy and takes a minute: not for every test run.
            continue;
        }
        let ended = folder.shell(&format!("\"$FABSWARM\" {arguments}"));
        assert_eq!(ended.code, Some(0), "{line}\n{ended}");
        commands += 1;
    }
    assert!(commands >= 5, "the README shows only {commands} commands");
}

#[test]
fn the_scenario_of_the_readme_runs() {
    let folder = Folder::new();
    let scenario = README.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    folder.write("mine.toml", scenario);
    folder.succeeds("run mine.toml --rounds 10 --error-below 0");
}
