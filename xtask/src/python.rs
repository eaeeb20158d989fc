//! The Python that reads the files of runs, builds the wheel and sets the book.

use anyhow::Result;
use std::path::PathBuf;

use crate::install;
use crate::step;

/// Packages that build the wheel, run its tests, read the files of a run and set the formulas of the book.
const PACKAGES: [&str; 10] = [
    "ipykernel",
    "latex2mathml",
    "maturin",
    "matplotlib",
    "mcap",
    "nbclient",
    "pandas",
    "pyarrow",
    "pytest",
    "safetensors",
];

/// The interpreter of a virtual environment that has all of them.
pub(crate) fn interpreter() -> Result<PathBuf> {
    let environment = step::root().join("target/python-venv");
    let python = environment.join("bin/python");
    let program = python.to_string_lossy();
    let import = format!("import {}", PACKAGES.join(", "));
    if step::command(&program, &["-c", &import]).output().is_ok_and(|output| output.status.success()) {
        println!("    {} are there", PACKAGES.join(", "));
    } else {
        install::announce(&PACKAGES.join(", "), "pip", 150, 60);
        step::run("python3", &["-m", "venv", &environment.to_string_lossy()])?;
        step::run(&program, &[&["-m", "pip", "install", "--quiet"], &PACKAGES[..]].concat())?;
    }
    Ok(python)
}
