//! The NumPy implementation, run in a virtual environment of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use fabswarm_diagnostic::Diagnostic;
use serde_json::Value;

use super::{BenchCase, STEP_FACTOR};
use fabswarm_sim::cache_folder;
use fabswarm_sim::scenario::Scenario;

const SCRIPT: &str = include_str!("../../benches/peers/numpy_fab.py");

/// A Python that has NumPy, and the script to run with it.
#[derive(Debug)]
pub(crate) struct NumPy {
    python: PathBuf,
    script: PathBuf,
}

impl NumPy {
    /// Makes the virtual environment under the user's cache folder, unless it is there.
    pub(crate) fn prepare() -> Result<Self, Diagnostic> {
        let no_folder = || {
            let what = "no cache folder: neither XDG_CACHE_HOME nor HOME is set";
            Diagnostic::new(what, "set FABSWARM_CACHE to a folder")
        };
        let folder = cache_folder::find().ok_or_else(no_folder)?.join("bench");
        let script = folder.join("numpy_fab.py");
        std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&script, SCRIPT)).map_err(|error| {
            let what = format!("cannot write {}: {error}", script.display());
            Diagnostic::new(what, "set FABSWARM_CACHE to a folder you may write to")
        })?;
        let environment = folder.join("venv");
        let python = environment.join("bin").join("python");
        if output_of(Command::new(&python).args(["-c", "import numpy"])).is_err() {
            output_of(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
            output_of(Command::new(&python).args(["-m", "pip", "install", "--quiet", "numpy"]))?;
        }
        Ok(Self { python, script })
    }

    /// Rounds per second of the dense implementation, over at least `seconds`.
    pub(crate) fn measure(&self, case: &BenchCase, seconds: f64) -> Result<f64, Diagnostic> {
        let algorithm = Scenario::default().algorithm;
        let mut command = Command::new(&self.python);
        command.arg(&self.script).arg(case.agents.to_string()).arg(case.edge_probability.to_string());
        command.arg(seconds.to_string());
        command.args(
            [algorithm.eta_x, algorithm.eta_y, algorithm.eta_z].map(|step| (step * STEP_FACTOR).to_string()),
        );
        let output = output_of(&mut command)?;
        let reply: Value =
            serde_json::from_str(&output).map_err(|error| failed(&command, &error.to_string()))?;
        reply["rounds_per_second"].as_f64().ok_or_else(|| failed(&command, "it printed no rounds_per_second"))
    }
}

fn output_of(command: &mut Command) -> Result<String, Diagnostic> {
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| failed(command, &error.to_string()))?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr);
        return Err(failed(command, messages.trim().lines().last().unwrap_or("no output")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn failed(command: &Command, reason: &str) -> Diagnostic {
    let what = format!("`{command:?}` failed: {reason}");
    Diagnostic::new(what, "install Python 3 with venv, and see that pip can fetch numpy")
}
