//! The live page in a real browser, and a run in Foxglove's own client.

use std::path::Path;

use anyhow::Result;

use crate::install;
use crate::step;
use crate::test::{self, EVERY_COMMAND};

/// The client and its pinned packages.
const FOXGLOVE: &str = "host/live/tests/foxglove";

/// Installs the browser where it is missing, builds the command with the page, and tests the page.
pub(crate) fn test() -> Result<()> {
    install::chromium()?;
    let program = test::build_command()?;
    // The whole workspace with every command, as in the other tests: a part of it would build its dependencies again.
    let arguments = ["test", "--workspace", EVERY_COMMAND, "--locked", "--test", "browser"];
    let arguments = [&arguments[..], &["--", "--ignored", "--test-threads", "2"]].concat();
    step::run_with("cargo", &arguments, &[("FABSWARM", &program.to_string_lossy())])?;
    foxglove(&program)
}

/// Reads a run with the client that Foxglove publishes.
fn foxglove(program: &Path) -> Result<()> {
    install::node()?;
    install::npm(FOXGLOVE, 5)?;
    let out = step::root().join("target/foxglove");
    let _ = std::fs::remove_dir_all(&out);
    let arguments = ["client.mjs", &program.to_string_lossy(), &out.to_string_lossy()];
    step::run_in(FOXGLOVE, "node", &arguments)
}
