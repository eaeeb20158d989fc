//! Installs the emulator.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::step;

const PROGRAM: &str = "qemu-system-arm";
const BACKPORTS: &str = "/etc/apt/sources.list.d/bookworm-backports.sources";

/// Installs QEMU with apt, unless it is there.
pub(crate) fn install() -> Result<()> {
    if let Ok(version) = step::output_of(PROGRAM, &["--version"]) {
        println!("    {} is there", version.lines().next().unwrap_or(PROGRAM));
        return Ok(());
    }
    if step::output_of("apt-get", &["--version"]).is_err() {
        bail!("install {PROGRAM} 7.2 or newer with your system's package manager");
    }
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let mut from = Vec::new();
    // On Debian 12 the stock package would remove tools of a backported QEMU that may be there.
    if release.contains("VERSION_CODENAME=bookworm") {
        if !Path::new(BACKPORTS).exists() {
            let draft = env::temp_dir().join("bookworm-backports.sources");
            fs::write(&draft, backports()).with_context(|| format!("cannot write {}", draft.display()))?;
            as_root("install", &["-m", "644", &draft.to_string_lossy(), BACKPORTS])?;
        }
        from = vec!["-t", "bookworm-backports"];
    }
    as_root("apt-get", &["update", "-qq"])?;
    let install = ["install", "-y", "-qq", "--no-install-recommends"];
    as_root("apt-get", &[&install[..], &from[..], &[PROGRAM]].concat())
}

/// Runs a command that only root may run, by way of sudo where this is somebody else.
fn as_root(program: &str, arguments: &[&str]) -> Result<()> {
    if step::output_of("id", &["-u"])?.trim() == "0" {
        return step::run(program, arguments);
    }
    // Without a terminal nobody could answer a question.
    step::run("sudo", &[&["-n", program], arguments].concat()).with_context(|| {
        format!(
            "{PROGRAM} must be installed by root: run `sudo apt-get install {PROGRAM}`, or this task as root"
        )
    })
}

fn backports() -> &'static str {
    "Types: deb\n\
     URIs: http://deb.debian.org/debian\n\
     Suites: bookworm-backports\n\
     Components: main\n\
     Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
}
