//! The Python that reads the files of runs, builds the wheel and sets the book.

use anyhow::Result;

use crate::{install, step};

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
pub(crate) fn interpreter() -> Result<String> {
    let environment = step::root().join("target/python-venv");
    let program = environment.join("bin/python").to_string_lossy().into_owned();
    let import = format!("import {}", PACKAGES.join(", "));
    if step::succeeds(&program, &["-c", &import]) {
        println!("    {} are there", PACKAGES.join(", "));
    } else {
        install::announce(&PACKAGES.join(", "), "pip", 150, 60);
        step::run("python3", &["-m", "venv", &environment.to_string_lossy()])?;
        step::run(&program, &[&["-m", "pip", "install", "--quiet"], &PACKAGES[..]].concat())?;
    }
    Ok(program)
}
