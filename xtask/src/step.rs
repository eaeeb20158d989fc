//! Steps of a task: each is announced, timed and listed in the end.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// One step of a task.
pub(crate) struct Step {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// What it does.
    pub(crate) what: &'static str,
    /// Does it.
    pub(crate) run: fn() -> Result<()>,
}

/// Runs the `chosen` steps, or all of them, and lists their times. The first failure ends it.
pub(crate) fn run_all(steps: &[Step], chosen: &[String]) -> Result<()> {
    if let Some(unknown) = chosen.iter().find(|name| steps.iter().all(|step| step.name != name.as_str())) {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        bail!("there is no step `{unknown}`; the steps are {}", names.join(", "));
    }
    let mut times: Vec<(&Step, Duration)> = Vec::new();
    let started = Instant::now();
    for step in steps {
        if !chosen.is_empty() && !chosen.iter().any(|name| name == step.name) {
            continue;
        }
        println!("==> {}: {}", step.name, step.what);
        let started = Instant::now();
        let result = (step.run)();
        times.push((step, started.elapsed()));
        if let Err(error) = result {
            print_times(&times);
            return Err(error
                .context(format!("step `{}` failed; run it alone with `cargo xtask test {0}`", step.name)));
        }
    }
    print_times(&times);
    println!("all steps passed in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn print_times(times: &[(&Step, Duration)]) {
    println!("\n{:<10} {:>8}  what", "step", "seconds");
    for (step, time) in times {
        println!("{:<10} {:>8.1}  {}", step.name, time.as_secs_f64(), step.what);
    }
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// A command that runs at the root of the repository and asks nothing.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root()).stdin(Stdio::null());
    // What Cargo tells this program of itself is not for what it starts: build scripts that look at it would run again.
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
    run_in(".", program, arguments)
}

/// Runs a command in a folder of the repository and shows its output.
pub(crate) fn run_in(folder: &str, program: &str, arguments: &[&str]) -> Result<()> {
    execute(folder, program, arguments, &[])
}

/// Runs a command with environment variables of its own and shows its output.
pub(crate) fn run_with(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    execute(".", program, arguments, variables)
}

fn execute(folder: &str, program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let place = if folder == "." { String::new() } else { format!(" (in {folder})") };
    println!("    {program} {}{place}", arguments.join(" "));
    let mut command = command(program, arguments);
    command.envs(variables.iter().copied());
    if let Some(root) = command.get_current_dir().map(|root| root.join(folder)) {
        command.current_dir(root);
    }
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("`{program} {}`{place} ended with {status}", arguments.join(" "));
    }
    Ok(())
}

/// Runs a command and gives what it printed.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> Result<String> {
    let output = command(program, arguments).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        bail!("`{program} {}` ended with {}", arguments.join(" "), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command that only root may run, by way of sudo where this is somebody else.
pub(crate) fn as_root(program: &str, arguments: &[&str]) -> Result<()> {
    if output_of("id", &["-u"])?.trim() == "0" {
        return run(program, arguments);
    }
    // Without a terminal nobody could answer a question.
    run("sudo", &[&["-n", program], arguments].concat()).with_context(|| {
        format!("root must run `{program} {}`: run it with sudo, or this task as root", arguments.join(" "))
    })
}
