//! Installs the emulator of Picos.

use anyhow::{Context, Result, bail};

use crate::step;

/// Where the script and the pinned version of the package are.
const FOLDER: &str = "boards/pico/emulator";

/// Installs npm's rp2040js beside the script that uses it, unless it is there, and Node with apt where that is missing.
pub(crate) fn install() -> Result<()> {
    install_node()?;
    let is_pinned = step::command("npm", &["ls", "--prefix", FOLDER]).output().context("cannot start npm")?;
    if is_pinned.status.success() {
        println!("    rp2040js is there");
        return Ok(());
    }
    step::run_in(FOLDER, "npm", &["ci", "--no-audit", "--no-fund"])
}

/// Installs Node with apt, unless it is there.
pub(crate) fn install_node() -> Result<()> {
    if step::output_of("npm", &["--version"]).is_err() {
        if step::output_of("apt-get", &["--version"]).is_err() {
            bail!("install Node 18 or newer with npm, by your system's package manager");
        }
        step::as_root("apt-get", &["update", "-qq"])?;
        step::as_root("apt-get", &["install", "-y", "-qq", "--no-install-recommends", "nodejs", "npm"])?;
    }
    Ok(())
}
