//! Steps of a task: each is announced, timed and listed in the end.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

pub(crate) struct Step {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Whether it needs long compiling or running: such steps run only by name and with `all`.
    pub(crate) is_long: bool,
    pub(crate) run: fn() -> Result<()>,
}

enum Outcome {
    Passed(Duration),
    PassedBefore,
    Failed(Duration),
}

/// Runs the steps that are named, all of them for `all`, or those that are not long. Lists their times; the first failure ends it.
pub(crate) fn run_all(steps: &[Step], named: &[&str]) -> Result<()> {
    let runs_all = named == ["all"];
    let is_unknown = |name: &&&str| steps.iter().all(|step| step.name != **name);
    if let Some(unknown) = named.iter().find(is_unknown).filter(|_| !runs_all) {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        bail!("there is no step `{unknown}`; the steps are {} and all", names.join(", "));
    }
    let is_chosen = |step: &&Step| match named {
        [] => !step.is_long,
        _ => runs_all || named.contains(&step.name),
    };
    let chosen: Vec<&Step> = steps.iter().filter(is_chosen).collect();
    let files = tree_of_files();
    let mut outcomes: Vec<(&Step, Outcome)> = Vec::new();
    let mut failure = None;
    for &step in &chosen {
        let mark = root().join("target/passed").join(step.name);
        let has_passed = fs::read_to_string(&mark).is_ok_and(|tree| files.as_ref() == Some(&tree));
        if runs_all && has_passed && !step.is_long {
            outcomes.push((step, Outcome::PassedBefore));
            continue;
        }
        println!("==> {}: {}", step.name, step.what);
        let started = Instant::now();
        let result = (step.run)();
        let time = started.elapsed();
        if let Err(error) = result {
            let alone = format!("step `{}` failed; run it alone with `cargo xtask test {0}`", step.name);
            failure = Some(error.context(alone));
            outcomes.push((step, Outcome::Failed(time)));
            break;
        }
        outcomes.push((step, Outcome::Passed(time)));
        if let (Some(tree), Some(folder)) = (&files, mark.parent()) {
            let _ = fs::create_dir_all(folder).and_then(|()| fs::write(&mark, tree));
        }
    }
    print_outcomes(&outcomes, chosen.len());
    failure.map_or(Ok(()), Err)
}

/// The Git tree id of the files as they are now; `None` outside a repository. Steps that passed with it are not run again by `all`.
fn tree_of_files() -> Option<String> {
    let index = root().join("target/passed.index");
    let git = |arguments: &[&str]| {
        let output = command("git", arguments).env("GIT_INDEX_FILE", &index).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    git(&["add", "--all"])?;
    git(&["write-tree"])
}

fn print_outcomes(outcomes: &[(&Step, Outcome)], chosen: usize) {
    println!("\n{:<10} {:>8}  what", "step", "seconds");
    let (mut sum, mut failed) = (Duration::ZERO, 0);
    for (step, outcome) in outcomes {
        let (time, remark) = match outcome {
            Outcome::Passed(time) => (*time, ""),
            Outcome::PassedBefore => (Duration::ZERO, " (passed before, with the same files)"),
            Outcome::Failed(time) => (*time, " (failed)"),
        };
        (sum, failed) = (sum + time, failed + usize::from(matches!(outcome, Outcome::Failed(_))));
        println!("{:<10} {:>8.1}  {}{remark}", step.name, time.as_secs_f64(), step.what);
    }
    let (passed, left) = (outcomes.len() - failed, chosen - outcomes.len());
    println!("{:<10} {:>8.1}  {passed} passed, {failed} failed, {left} not run", "all", sum.as_secs_f64());
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The text of a file of the repository.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = root().join(path);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// A command that runs at the root of the repository and asks nothing.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root()).stdin(Stdio::null());
    // Cargo's variables about this program would make build scripts of other programs run again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command and shows its output.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<()> {
    run_with(program, arguments, &[])
}

/// Runs a command in a folder of the repository and shows its output.
pub(crate) fn run_in(folder: &str, program: &str, arguments: &[&str]) -> Result<()> {
    let mut command = command(program, arguments);
    show(
        command.current_dir(root().join(folder)),
        &format!("{program} {} (in {folder})", arguments.join(" ")),
    )
}

/// Runs a command with additional environment variables and shows its output.
pub(crate) fn run_with(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let mut command = command(program, arguments);
    show(command.envs(variables.iter().copied()), &format!("{program} {}", arguments.join(" ")))
}

/// Runs a command, which is called `line`, and shows its output.
fn show(command: &mut Command, line: &str) -> Result<()> {
    println!("    {line}");
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    ensure!(status.success(), "`{line}` ended with {status}");
    Ok(())
}

/// Whether a command ends well, of which nothing is shown.
pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    command(program, arguments).output().is_ok_and(|output| output.status.success())
}

/// Runs a command and returns its output.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> Result<String> {
    output_in(root(), program, arguments)
}

/// Runs a command in a folder and returns its output.
pub(crate) fn output_in(folder: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let output = command(program, arguments).current_dir(folder).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        bail!("`{program} {}` ended with {}", arguments.join(" "), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command as root, through sudo for other users.
pub(crate) fn as_root(program: &str, arguments: &[&str]) -> Result<()> {
    if output_of("id", &["-u"])?.trim() == "0" {
        return run(program, arguments);
    }
    // `-n`: there may be no terminal to answer a password prompt.
    run("sudo", &[&["-n", program], arguments].concat()).with_context(|| {
        format!("root must run `{program} {}`: run it with sudo, or this task as root", arguments.join(" "))
    })
}
