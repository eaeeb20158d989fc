//! `cargo xtask test`: everything a change must pass.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::boards;
use crate::browser;
use crate::crates;
use crate::formats;
use crate::python;
use crate::qemu;
use crate::rp2040js;
use crate::step::{self, Step};

/// Microcontrollers without and with a floating-point unit, and a RISC-V one.
const TARGETS: [&str; 3] = ["thumbv6m-none-eabi", "thumbv7em-none-eabihf", "riscv32imc-unknown-none-elf"];

/// A plain build leaves out what takes long to compile; the tests leave out nothing.
pub(crate) const EVERY_COMMAND: &str = "--features=fabswarm/full";

const STEPS: &[Step] = &[
    Step {
        name: "install",
        what: "add the compiler targets and the emulators that are missing",
        run: install,
    },
    Step { name: "fmt", what: "check the formatting", run: || cargo(&["fmt", "--all", "--check"]) },
    Step { name: "locks", what: "check that every lock file has what is depended on", run: locks },
    Step { name: "clippy", what: "lint all code", run: clippy },
    Step {
        name: "boards",
        what: "lint the firmware of every board, build it within its budget and list what it takes",
        run: boards::check,
    },
    Step { name: "tests", what: "run all tests", run: tests },
    Step {
        name: "flashing",
        what: "flash boards that are not there through debug probes and by boot ROMs",
        run: flashing,
    },
    Step { name: "formats", what: "read run folders with Python's mcap and pandas", run: formats::test },
    Step { name: "python", what: "build the Python package and test its wheel", run: python::test },
    Step {
        name: "browser",
        what: "look at the live page in a real browser, and at a run in Foxglove's client",
        run: browser::test,
    },
    Step { name: "doctests", what: "run the examples in the documentation", run: doctests },
    Step { name: "docs", what: "build the documentation without a warning", run: docs },
    Step { name: "alone", what: "check the in-process swarm without its heavy parts", run: alone },
    Step { name: "package", what: "package every crate that is not a board", run: package },
    Step { name: "crates", what: "check that docs/architecture.md shows the crates", run: crates::check },
    Step { name: "targets", what: "build the shared crate for microcontrollers", run: targets },
    Step { name: "features", what: "check that tasks have the same bits on every host", run: features },
];

pub(crate) fn run(chosen: &[String]) -> Result<()> {
    step::run_all(STEPS, chosen)
}

fn cargo(arguments: &[&str]) -> Result<()> {
    step::run("cargo", arguments)
}

fn install() -> Result<()> {
    let installed = step::output_of("rustup", &["target", "list", "--installed"])
        .context("targets are added with rustup (https://rustup.rs)")?;
    let mut targets = boards::targets()?;
    targets.extend(TARGETS.map(str::to_owned));
    targets.sort();
    targets.dedup();
    for target in targets {
        if installed.lines().any(|line| line == target) {
            println!("    {target} is there");
        } else {
            step::run("rustup", &["target", "add", &target])?;
        }
    }
    qemu::install()?;
    rp2040js::install()
}

/// What stands outside the workspace has lock files of its own, which a new dependency of a crate makes stale: better known at once
/// than when it is built.
fn locks() -> Result<()> {
    let boards = boards::names()?.into_iter().map(|board| format!("boards/{board}"));
    for folder in [".", "fuzz", "host/python"].into_iter().map(str::to_owned).chain(boards) {
        let mut command = step::command("cargo", &["tree", "--locked", "--quiet"]);
        let output = command.current_dir(step::root().join(&folder)).output();
        let output = output.context("cannot start cargo")?;
        if !output.status.success() {
            bail!("{folder}/Cargo.lock: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
    }
    Ok(())
}

fn clippy() -> Result<()> {
    cargo(&["clippy", "--workspace", EVERY_COMMAND, "--all-targets", "--locked", "--", "-D", "warnings"])?;
    // Fuzz targets stand outside the workspace too: they are built with a fuzzer's flags.
    step::run_in("fuzz", "cargo", &["clippy", "--locked", "--", "-D", "warnings"])
}

fn tests() -> Result<()> {
    let nextest = step::command("cargo", &["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if nextest.is_ok_and(|status| status.success()) {
        cargo(&["nextest", "run", "--workspace", EVERY_COMMAND, "--locked", "--no-fail-fast"])
    } else {
        cargo(&["test", "--workspace", EVERY_COMMAND, "--all-targets", "--locked"])
    }
}

/// What flashes boards builds on libraries that nothing else needs, so `EVERY_COMMAND` is without them.
fn flashing() -> Result<()> {
    let lint = ["clippy", "--package", "fabswarm", "--package", "fabswarm-flash", "--lib"];
    let tests = ["--test", "esp", "--test", "probe", "--no-default-features", "--locked"];
    let features = ["--features", "fabswarm/esp,fabswarm/probe", "--", "-D", "warnings"];
    cargo(&[&lint[..], &tests[..], &features[..]].concat())?;
    cargo(&["test", "--package", "fabswarm-flash", "--features", "esp,probe", "--locked", "--tests"])
}

/// Builds the command as the tests do, and returns where it is. `cargo build` leaves out what only tests depend on, and builds
/// everything else once more for it.
pub(crate) fn build_command() -> Result<PathBuf> {
    cargo(&["test", "--workspace", EVERY_COMMAND, "--locked", "--no-run", "--test", "cli"])?;
    Ok(step::root().join("target/debug/fabswarm"))
}

fn doctests() -> Result<()> {
    cargo(&["test", "--workspace", EVERY_COMMAND, "--doc", "--locked"])
}

fn targets() -> Result<()> {
    for target in TARGETS {
        cargo(&["build", "--package", "fabswarm-shared", "--release", "--locked", "--target", target])?;
    }
    Ok(())
}

fn docs() -> Result<()> {
    let arguments = ["doc", "--workspace", EVERY_COMMAND, "--no-deps", "--locked"];
    step::run_with("cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")])
}

/// What a swarm in one process must not wait for.
const HEAVY: [&str; 5] = ["cudarc", "gemm-common", "parquet", "fabswarm-large", "fabswarm-attach"];

/// A swarm of small agents in this process compiles without CUDA, GEMM and Parquet. That it runs is seen by the tests of the command,
/// which is the same program with more in it.
fn alone() -> Result<()> {
    let only = ["--package", "fabswarm", "--no-default-features", "--locked"];
    let tree =
        step::output_of("cargo", &[&["tree", "--edges", "normal", "--prefix", "none"], &only[..]].concat())?;
    if let Some(line) =
        tree.lines().find(|line| HEAVY.iter().any(|name| line.starts_with(&format!("{name} "))))
    {
        bail!("`fabswarm --no-default-features` depends on {line}");
    }
    cargo(&[&["check", "--quiet"], &only[..]].concat())
}

fn package() -> Result<()> {
    cargo(&[
        "package",
        "--workspace",
        "--exclude",
        "xtask",
        "--exclude",
        "own-problem",
        "--no-verify",
        "--allow-dirty",
        "--locked",
        "--quiet",
    ])
}

/// With its feature `std`, nalgebra multiplies matrices with kernels that are chosen by the processor and differ in the last bit.
/// A task's data are such products, so the same scenario would give agents other problems on another host. One dependant that
/// asks for the feature turns it on for all.
fn features() -> Result<()> {
    for package in ["fabswarm-sim", "fabswarm"] {
        let tree = step::output_of(
            "cargo",
            &["tree", "--package", package, "--locked", "--edges", "features,normal"],
        )?;
        if let Some(line) = tree.lines().find(|line| line.contains("nalgebra feature \"std\"")) {
            bail!(
                "the graph of {package} has `{}`; depend on nalgebra with default-features = false",
                line.trim()
            );
        }
        println!("    {package}: not among {} lines of features", tree.lines().count());
    }
    Ok(())
}
