//! The live page in a real browser.

use anyhow::Result;

use crate::install;
use crate::workspace;

/// Installs the browser where it is missing, builds the command with the page, and tests the page.
pub(crate) fn test() -> Result<()> {
    install::chromium()?;
    let program = workspace::build_command()?;
    let arguments = ["test", "--test", "browser", "--", "--ignored", "--test-threads", "2"];
    workspace::linted(&arguments, &[("FABSWARM", &program.to_string_lossy())])
}
