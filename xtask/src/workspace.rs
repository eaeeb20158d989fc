//! Builds of the workspace, as the tests have them.

use anyhow::Result;

use crate::step;

/// The tests build every command, also those that a plain build leaves out.
pub(crate) const EVERY_COMMAND: &str = "--features=fabswarm/full";

/// Arguments of all builds of the tests. Clippy compiles the workspace, so that one build lints and tests; children of a test know
/// nothing of that, as they would of a variable.
const TESTED: [&str; 4] =
    ["--workspace", EVERY_COMMAND, "--locked", "--config=build.rustc-workspace-wrapper='clippy-driver'"];

/// Runs cargo on the tests.
pub(crate) fn linted(arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let (command, options) = arguments.split_at(1 + usize::from(arguments[0] == "nextest"));
    let variables = [variables, &[("CLIPPY_ARGS", "-Dwarnings")]].concat();
    step::run_with("cargo", &[command, &TESTED, options].concat(), &variables)
}

/// Builds the command as the tests do, and returns where it is. `cargo build` leaves out what only tests depend on, and builds
/// everything else once more for it.
pub(crate) fn build_command() -> Result<String> {
    linted(&["test", "--no-run", "--test", "cli"], &[])?;
    Ok(step::root().join("target/debug/fabswarm").to_string_lossy().into_owned())
}
