//! The live page in a real browser.

use anyhow::Result;

use crate::install;
use crate::step;
use crate::test::{self, EVERY_COMMAND};

/// Installs the browser where it is missing, builds the command with the page, and tests the page.
pub(crate) fn test() -> Result<()> {
    install::chromium()?;
    let program = test::build_command()?;
    // The whole workspace with every command, as in the other tests: a part of it would build its dependencies again.
    let arguments = ["test", "--workspace", EVERY_COMMAND, "--locked", "--test", "browser"];
    let arguments = [&arguments[..], &["--", "--ignored", "--test-threads", "2"]].concat();
    step::run_with("cargo", &arguments, &[("FABSWARM", &program.to_string_lossy())])
}
