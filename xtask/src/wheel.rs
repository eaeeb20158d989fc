//! The Python package, built as a wheel and tested as its users have it.

use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

use crate::{python, step, torch, workspace};

/// Builds the wheel with a profile of Cargo, for systems as maturin's `--compatibility` names them, and returns its path.
pub(crate) fn build_wheel(profile: &str, compatibility: &str) -> Result<PathBuf> {
    let python = python::interpreter()?;
    let wheels = step::root().join("target/wheels");
    let _ = fs::remove_dir_all(&wheels);
    let build = ["-m", "maturin", "build", "--quiet", "--manifest-path", "host/python/Cargo.toml"];
    let how = ["--profile", profile, "--locked", "--compatibility", compatibility, "--interpreter", &python];
    let places = ["--out", &*wheels.to_string_lossy()];
    step::run(&python, &[&build[..], &how, &places].concat())?;
    Ok(fs::read_dir(&wheels)?.next().context("maturin has left no wheel")??.path())
}

/// Builds the wheel, installs it as its users do, and runs its tests.
pub(crate) fn test() -> Result<()> {
    let program = workspace::build_command()?;
    let wheel = build_wheel("dev", "linux")?;
    let python = python::interpreter()?;
    let install = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps"];
    step::run(&python, &[&install[..], &[&wheel.to_string_lossy()]].concat())?;
    let tests = ["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "host/python/tests"];
    let torch = torch::interpreter()?.unwrap_or_default();
    step::run_with(&python, &tests, &[("FABSWARM", &program), ("FABSWARM_TORCH", &torch)])
}
