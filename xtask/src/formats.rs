//! Reads the files of runs with other tools.

use anyhow::{Context, Result};
use std::fs;

use crate::{python, step, torch, workspace};

/// Logs and tables of runs.
const LOGS: &str = "host/view/tests/formats.py";
/// The answers of sweeps and trained models.
const ANSWERS: &str = "host/fabswarm/tests/answers.py";

/// Makes runs, one of which is killed, and reads their files in Python.
pub(crate) fn test() -> Result<()> {
    let python = python::interpreter()?;
    let program = workspace::build_command()?;
    let folder = step::root().join("target/formats");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let folder = folder.to_string_lossy();
    step::run(&python, &[LOGS, &program, &folder])?;
    let torch = torch::interpreter()?;
    let mut answers = vec![ANSWERS, &program, &folder];
    answers.extend(torch.as_deref());
    step::run(&python, &answers)
}
