//! `cargo xtask test`: everything a change must pass.

use anyhow::{Context, Result, bail};

use crate::step::{self, Step};
use crate::workspace::{self, EVERY_COMMAND, linted};
use crate::{boards, book, crates, formats, install, licences, names, release, versions, wheel};

/// The target of the emulated board.
const TARGET: &str = "thumbv7em-none-eabihf";

/// Tests that take long: those in a module `long`, which others leave out by `#[ignore = "long: …"]`, and those that do more with the
/// environment variable `FABSWARM_LONG`.
const LONG_TESTS: &str = "test(/(^|::)long::/) + test(random_faults) + binary(fuzz_bounded) \
    + (binary(swarm) & test(/^(convergence|intruder)::/))";

#[rustfmt::skip]
const STEPS: &[Step] = &[
    quick("install", "add the compiler targets and emulators that are missing", install),
    quick("fmt", "check the formatting", || cargo(&["fmt", "--all", "--check"])),
    quick("locks", "check that every lock file has what is depended on", locks),
    quick("versions", "check that files name the same versions of fabswarm and Rust", versions::check),
    quick("licences", "check whose every file is, and the licences of dependencies", licences::check),
    quick("crates", "check that docs/architecture.md shows the crates", crates::check),
    quick("names", "check that no two types have one name", names::check),
    quick("links", "check the links of every document", links),
    quick("features", "check that tasks have the same bits on every host", features),
    quick("alone", "check that the in-process swarm depends on none of the heavy parts", alone),
    quick("build", "compile the workspace and its tests, and lint them", || linted(&["test", "--all-targets", "--no-run"], &[])),
    quick("tests", "run the tests", tests),
    quick("doctests", "run the examples in the documentation", || linted(&["test", "--doc"], &[])),
    long("long", "run the tests that take long", long_tests),
    long("boards", "lint the firmware of every board, build it within its budget and list what it takes", boards),
    long("flashing", "flash boards that are not there through debug probes and by boot ROMs", flashing),
    long("formats", "read run folders with Python's mcap and pandas", formats::test),
    long("python", "build the Python package and test its wheel", wheel::test),
    long("browser", "look at the live page in a real browser", browser),
    long("fuzz", "lint the fuzz targets", || step::run_in("fuzz", "cargo", &["clippy", "--locked", "--", "-D", "warnings"])),
    long("docs", "build the documentation without a warning, and the book", docs),
    long("package", "package every crate that is not a board", package),
    long("release", "pack a release of what was built for the tests, and try it", release::rehearse),
];

const fn quick(name: &'static str, what: &'static str, run: fn() -> Result<()>) -> Step {
    Step { name, what, is_long: false, run }
}

const fn long(name: &'static str, what: &'static str, run: fn() -> Result<()>) -> Step {
    Step { name, what, is_long: true, run }
}

pub(crate) fn run(chosen: &[&str]) -> Result<()> {
    step::run_all(STEPS, chosen)
}

fn cargo(arguments: &[&str]) -> Result<()> {
    step::run("cargo", arguments)
}

fn install() -> Result<()> {
    install::targets(&[TARGET.to_owned()])?;
    install::qemu()
}

fn boards() -> Result<()> {
    install::targets(&boards::targets()?)?;
    boards::check()
}

/// Checks the lock files, of which those outside the workspace become stale with a new dependency of a crate.
fn locks() -> Result<()> {
    for folder in [".", "boards", "fuzz"] {
        step::output_in(&step::root().join(folder), "cargo", &["tree", "--locked", "--quiet"])
            .with_context(|| format!("{folder}/Cargo.lock lacks something"))?;
    }
    Ok(())
}

fn links() -> Result<()> {
    let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    book::check_links(&names)
}

fn has_nextest() -> bool {
    step::succeeds("cargo", &["nextest", "--version"])
}

fn tests() -> Result<()> {
    let run: &[&str] = if has_nextest() { &["nextest", "run"] } else { &["test", "--all-targets"] };
    linted(&[run, &["--no-fail-fast"]].concat(), &[])
}

fn long_tests() -> Result<()> {
    if !has_nextest() {
        bail!("tests that take long are chosen with nextest: `cargo install cargo-nextest --locked`");
    }
    // Some build the firmware of other boards, and run Picos in npm's emulator.
    install::targets(&boards::targets()?)?;
    install::rp2040js()?;
    let chosen = format!("({LONG_TESTS}) - test(write_corpus)");
    let run = ["nextest", "run", "--no-fail-fast", "--run-ignored", "all", "-E", &chosen];
    linted(&run, &[("FABSWARM_LONG", "1")])
}

/// Flashing needs libraries that nothing else needs, so `EVERY_COMMAND` leaves it out.
fn flashing() -> Result<()> {
    let lint = ["clippy", "--package", "fabswarm", "--package", "fabswarm-flash", "--lib"];
    let tests = ["--test", "esp", "--test", "probe", "--no-default-features", "--locked"];
    let features = ["--features", "fabswarm/flash", "--", "-D", "warnings"];
    cargo(&[&lint[..], &tests[..], &features[..]].concat())?;
    cargo(&["test", "--package", "fabswarm-flash", "--features", "drivers", "--locked", "--tests"])
}

/// The live page in a real browser, which is installed where it is missing.
fn browser() -> Result<()> {
    install::chromium()?;
    let program = workspace::build_command()?;
    let arguments = ["test", "--test", "browser", "--", "--ignored", "--test-threads", "2"];
    linted(&arguments, &[("FABSWARM", &program)])
}

fn docs() -> Result<()> {
    let arguments = ["doc", "--workspace", EVERY_COMMAND, "--no-deps", "--locked"];
    step::run_with("cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")])?;
    book::build()
}

/// Heavy crates that a swarm in one process must not depend on.
const HEAVY: [&str; 4] = ["cudarc", "gemm-common", "fabswarm-large", "fabswarm-attach"];

/// A swarm of small agents in this process needs no CUDA and no GEMM.
fn alone() -> Result<()> {
    let tree = ["tree", "--edges", "normal", "--prefix", "none", "--locked"];
    let only = ["--package", "fabswarm", "--no-default-features"];
    let tree = step::output_of("cargo", &[&tree[..], &only[..]].concat())?;
    let is_heavy = |line: &&str| HEAVY.iter().any(|name| line.starts_with(&format!("{name} ")));
    match tree.lines().find(is_heavy) {
        Some(line) => bail!("`fabswarm --no-default-features` depends on {line}"),
        None => Ok(()),
    }
}

fn package() -> Result<()> {
    let excluded = ["--exclude=xtask", "--exclude=own-problem", "--exclude=fabswarm-python"];
    let how = ["--no-verify", "--allow-dirty", "--locked", "--quiet"];
    cargo(&[&["package", "--workspace"], &excluded[..], &how].concat())
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
