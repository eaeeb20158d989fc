//! What a run leaves behind, read with the tools of others.

use anyhow::{Context, Result};
use std::fs;

use crate::step;
use crate::test;

/// What reads the files.
const PACKAGES: [&str; 3] = ["mcap", "pandas", "pyarrow"];

/// Logs and tables of runs; the answers of sweeps and trained models.
const SCRIPTS: [&str; 2] = ["host/view/tests/formats.py", "host/fabswarm/tests/answers.py"];

/// Makes runs, one of which is killed, and reads their files in Python.
pub(crate) fn test() -> Result<()> {
    let environment = step::root().join("target/formats-venv");
    let python = environment.join("bin/python");
    let python = python.to_string_lossy();
    let import = format!("import {}", PACKAGES.join(", "));
    if step::command(&python, &["-c", &import]).output().is_ok_and(|output| output.status.success()) {
        println!("    {} are there", PACKAGES.join(", "));
    } else {
        step::run("python3", &["-m", "venv", &environment.to_string_lossy()])?;
        step::run(&python, &[&["-m", "pip", "install", "--quiet"], &PACKAGES[..]].concat())?;
    }
    let program = test::build_command()?;
    let folder = step::root().join("target/formats");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for script in SCRIPTS {
        step::run(&python, &[script, &program.to_string_lossy(), &folder.to_string_lossy()])?;
    }
    Ok(())
}
