//! What a run leaves behind, read with the tools of others.

use anyhow::{Context, Result};
use std::fs;

use crate::python;
use crate::step;
use crate::test;

/// Logs and tables of runs; the answers of sweeps and trained models.
const SCRIPTS: [&str; 2] = ["host/view/tests/formats.py", "host/fabswarm/tests/answers.py"];

/// Makes runs, one of which is killed, and reads their files in Python.
pub(crate) fn test() -> Result<()> {
    let python = python::interpreter()?;
    let program = test::build_command()?;
    let folder = step::root().join("target/formats");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for script in SCRIPTS {
        step::run(
            &python.to_string_lossy(),
            &[script, &program.to_string_lossy(), &folder.to_string_lossy()],
        )?;
    }
    Ok(())
}
