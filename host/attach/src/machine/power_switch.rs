//! The power switch of a board on a rig.

use fabswarm_diagnostic::Diagnostic;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A `[[chip]]` of the file: commands that cut the power of its board and restore it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PowerSwitch {
    /// In hexadecimal digits, as `boards list` prints it.
    pub(super) number: String,
    /// Where its board must be.
    port: Option<PathBuf>,
    off: String,
    on: String,
}

impl PowerSwitch {
    /// The port, if the file names it: a board may get another name when it is back.
    pub(super) fn port(&self) -> Option<&Path> {
        self.port.as_deref()
    }

    pub(super) fn cut(&self) -> Result<(), Diagnostic> {
        run(&self.off)
    }

    pub(super) fn restore(&self) -> Result<(), Diagnostic> {
        run(&self.on)
    }
}

/// Runs a command of the user's to its end.
fn run(command: &str) -> Result<(), Diagnostic> {
    let failed = |reason: &str| {
        Diagnostic::new(
            format!("the rig's command `{command}` failed: {reason}"),
            "run it by hand, and correct the rig",
        )
    };
    let output = Command::new("sh").args(["-c", command]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(&format!("{}, {}", output.status, String::from_utf8_lossy(&output.stderr).trim())))
}
