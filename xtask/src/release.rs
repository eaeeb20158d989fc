//! `cargo xtask release`: the files of a release, and a trial of them from an empty folder.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{boards, install, python, step, wheel, workspace};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SUMS: &str = "SHA256SUMS";

/// Builds all parts with optimisation, packs them into `target/release-VERSION` and tries them.
pub(crate) fn make() -> Result<()> {
    step::run("cargo", &["build", "--release", "--package", "fabswarm", "--features", "full", "--locked"])?;
    let program = step::root().join("target/release/fabswarm");
    assemble(&format!("release-{VERSION}"), &program, &wheel::build_wheel("release", "pypi")?)
}

/// Packs and tries the parts as other steps of the test have built them.
pub(crate) fn rehearse() -> Result<()> {
    let program = workspace::build_command()?;
    assemble("release-rehearsal", Path::new(&program), &wheel::build_wheel("dev", "linux")?)
}

/// Packs a release into a folder of `target`, and tries it.
fn assemble(name: &str, program: &Path, wheel: &Path) -> Result<()> {
    install::targets(&boards::targets()?)?;
    let folder = step::root().join("target").join(name);
    let wheel_name = wheel.file_name().context("the wheel has no name")?.to_string_lossy();
    pack(&folder, program, wheel, &wheel_name)?;
    attempt(&folder, &wheel_name)?;
    println!("    {}", folder.display());
    Ok(())
}

/// Fills a new folder with the files of a release.
fn pack(folder: &Path, program: &Path, wheel: &Path, wheel_name: &str) -> Result<()> {
    empty(folder)?;
    let licences = ["LICENSE-APACHE", "LICENSE-MIT"].map(|name| (step::root().join(name), name));
    let copied = [(program.to_owned(), "fabswarm"), (wheel.to_owned(), wheel_name)];
    for (from, name) in copied.into_iter().chain(licences) {
        fs::copy(&from, folder.join(name)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let command = folder.join("fabswarm");
    let program = command.to_string_lossy();
    step::run("strip", &[&program])?;
    step::run(&program, &["manual", &folder.to_string_lossy()])?;
    for board in boards::released()? {
        let images = folder.join("images");
        step::run(&program, &["boards", "build", &board, "--out", &images.to_string_lossy()])?;
    }
    fs::write(folder.join("NOTES.md"), notes(&step::read("CHANGELOG.md")?, &fs::read(&command)?)?)?;
    let listed = step::output_in(folder, "find", &[".", "-type", "f", "-printf", "%P\\n"])?;
    let mut files: Vec<&str> = listed.lines().collect();
    files.sort_unstable();
    fs::write(folder.join(SUMS), step::output_in(folder, "sha256sum", &files)?)?;
    Ok(())
}

fn empty(folder: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// The notes of a release: what its files need, then its section of the changelog.
fn notes(changelog: &str, program: &[u8]) -> Result<String> {
    let changes = changelog.split("\n## ").find_map(|section| section.strip_prefix(&format!("[{VERSION}]")));
    let changes = changes.and_then(|changes| changes.split_once('\n')).with_context(|| {
        format!("CHANGELOG.md has no section `## [{VERSION}]`: move what is under `## [Unreleased]` there")
    })?;
    let text = String::from_utf8_lossy(program);
    let minors = text.split("GLIBC_2.").skip(1).filter_map(|rest| {
        rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|minor| minor.parse::<u32>().ok())
    });
    let glibc = minors.max().context("the command names no version of glibc")?;
    Ok(format!(
        "# fabswarm {VERSION}\n\n\
         `fabswarm` has all features but `flash`. It needs x86-64 Linux with glibc 2.{glibc} or newer; a static program could not\n\
         load CUDA. `run --boards` with emulated boards and `boards flash` need a clone of the repository.\n\
         `images/` has the firmware of every board, without a provisioning record. No image has run on a physical board yet.\n\
         Check the files with `sha256sum --check {SUMS}`.\n\n{}\n",
        changes.1.trim()
    ))
}

/// Uses the files of a release from an empty folder, as their users do.
fn attempt(release: &Path, wheel: &str) -> Result<()> {
    let path = |name: &str| release.join(name).to_string_lossy().into_owned();
    step::run_in(&path(""), "sha256sum", &["--check", "--quiet", "--strict", SUMS])?;
    for board in boards::released()? {
        boards::check_image_files(&board, &release.join("images"))?;
    }
    let man = path("man/man1/fabswarm-run.1");
    ensure!(Path::new(&man).is_file(), "there is no {man}");
    step::run("bash", &["-n", &path("completions/fabswarm.bash")])?;
    let trial = step::root().join("target/release-trial");
    empty(&trial)?;
    let place = trial.to_string_lossy();
    // It ends with 0 only where the swarm reaches its goal.
    step::run_in(&place, &path("fabswarm"), &["run", "--quiet"])?;
    let answer = trial.join("runs/0001-policy-evaluation/answer.npz");
    ensure!(answer.is_file(), "the first swarm has left no {}", answer.display());
    let python = python::interpreter()?;
    let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", "python"];
    step::run_in(&place, &python, &[&install[..], &[&path(wheel)]].concat())?;
    let program = "import sys; sys.path.insert(0, 'python'); import fabswarm; run = fabswarm.run(); \
                   assert 'release-trial' in fabswarm.__file__; assert run.summary['stopped_because'] == 'converged'";
    step::run_in(&place, &python, &["-c", program])
}

#[cfg(test)]
mod tests {
    use super::{VERSION, notes};

    #[test]
    fn notes_have_one_section_and_the_newest_glibc() {
        let text = format!(
            "# Changelog\n\n## [Unreleased]\n\n## [{VERSION}] - today\n\nthis\n\n## [0.0.1]\n\nold\n"
        );
        let notes_of = |changelog: &str| notes(changelog, b"\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.3.4\0");
        let text = notes_of(&text).unwrap();
        assert!(text.ends_with("\n\nthis\n") && text.contains("glibc 2.34 or newer"), "{text}");
        let error = notes_of("## [Unreleased]\n\nnew\n").unwrap_err().to_string();
        assert!(error.contains(&format!("no section `## [{VERSION}]`")), "{error}");
    }
}
