//! The power switch of a board on a rig.

use fabswarm_diagnostic::Diagnostic;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Commands that cut the power of a board and restore it.
#[derive(Clone, Debug)]
pub(crate) struct PowerSwitch {
    pub(super) off: String,
    pub(super) on: String,
    /// The port, if the file names it: a board may get another name when it is back.
    pub(super) port: Option<PathBuf>,
}

impl PowerSwitch {
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
