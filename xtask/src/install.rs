//! Installs missing tools, and announces each with its size and time.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::step;

const QEMU: &str = "qemu-system-arm";
/// Folder of the emulator of Picos and the pinned version of its package.
const RP2040JS: &str = "boards/pico/emulator";
const BACKPORTS: &str = "/etc/apt/sources.list.d/bookworm-backports.sources";

/// Says what is about to be installed.
pub(crate) fn announce(what: &str, with: &str, megabytes: u32, seconds: u32) {
    println!("    installing {what} with {with}: about {megabytes} MB to download, {seconds} s");
}

/// Installs packages of Debian, from a release of it or the usual one.
fn apt(packages: &[&str], from: &[&str], megabytes: u32, seconds: u32) -> Result<()> {
    let names = packages.join(" ");
    if step::command("apt-get", &["--version"]).output().is_err() {
        bail!("install {names} with your system's package manager");
    }
    announce(&names, "apt", megabytes, seconds);
    step::as_root("apt-get", &["update", "-qq"])?;
    let install = ["install", "-y", "-qq", "--no-install-recommends"];
    step::as_root("apt-get", &[&install[..], from, packages].concat())
}

fn is_there(program: &str) -> bool {
    let version = step::command(program, &["--version"]).output();
    let version = version.ok().filter(|output| output.status.success());
    if let Some(output) = &version {
        let text = String::from_utf8_lossy(&output.stdout);
        println!("    {program}: {} is there", text.lines().next().unwrap_or_default());
    }
    version.is_some()
}

/// Adds the compiler targets that are missing.
pub(crate) fn targets(targets: &[String]) -> Result<()> {
    let installed = step::output_of("rustup", &["target", "list", "--installed"])
        .context("targets are added with rustup (https://rustup.rs)")?;
    for target in targets {
        if installed.lines().any(|line| line == target) {
            println!("    {target} is there");
        } else {
            announce(target, "rustup", 15, 10);
            step::run("rustup", &["target", "add", target])?;
        }
    }
    Ok(())
}

/// The emulator of the board that tests run on.
pub(crate) fn qemu() -> Result<()> {
    if is_there(QEMU) {
        return Ok(());
    }
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    // On Debian 12 the stock package would remove tools of a backported QEMU that may be there.
    if !release.contains("VERSION_CODENAME=bookworm") {
        return apt(&[QEMU], &[], 20, 20);
    }
    if !Path::new(BACKPORTS).exists() {
        println!("    adding Debian's backports to apt, for QEMU: {BACKPORTS}");
        let draft = env::temp_dir().join("bookworm-backports.sources");
        fs::write(&draft, backports()?).with_context(|| format!("cannot write {}", draft.display()))?;
        step::as_root("install", &["-m", "644", &draft.to_string_lossy(), BACKPORTS])?;
    }
    apt(&[QEMU], &["-t", "bookworm-backports"], 20, 20)
}

/// The source of backports, on the mirror that the system takes its other packages from.
fn backports() -> Result<String> {
    let mut listings = vec![fs::read_to_string("/etc/apt/sources.list").unwrap_or_default()];
    for entry in fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten() {
        listings.push(fs::read_to_string(entry.path()).unwrap_or_default());
    }
    let mirror = listings.iter().flat_map(|listing| listing.lines()).find_map(mirror_of);
    let mirror =
        mirror.context("no Debian mirror in /etc/apt: install qemu-system-arm 7.2 or newer by hand")?;
    Ok(format!(
        "Types: deb\nURIs: {mirror}\nSuites: bookworm-backports\nComponents: main\n\
         Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    ))
}

/// The mirror in a line of either format of apt's sources.
fn mirror_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("URIs:").or_else(|| line.strip_prefix("deb "))?;
    rest.split_whitespace()
        .find(|word| word.contains("://") && word.trim_end_matches('/').ends_with("/debian"))
}

/// npm's rp2040js, the emulator of Picos, beside the script that uses it.
pub(crate) fn rp2040js() -> Result<()> {
    if !is_there("npm") {
        apt(&["nodejs", "npm"], &[], 60, 60)?;
    }
    if step::succeeds("npm", &["ls", "--prefix", RP2040JS]) {
        println!("    rp2040js is there");
        return Ok(());
    }
    announce("rp2040js", "npm", 5, 10);
    step::run_in(RP2040JS, "npm", &["ci", "--no-audit", "--no-fund"])
}

/// A browser and its driver.
pub(crate) fn chromium() -> Result<()> {
    if is_there("chromedriver") { Ok(()) } else { apt(&["chromium", "chromium-driver"], &[], 130, 60) }
}

#[cfg(test)]
mod tests {
    use super::mirror_of;

    #[test]
    fn the_mirror_is_found_in_both_formats() {
        assert_eq!(mirror_of("URIs: http://mirror.example/debian"), Some("http://mirror.example/debian"));
        let line = "deb [arch=amd64] https://mirror.example/debian/ bookworm main";
        assert_eq!(mirror_of(line), Some("https://mirror.example/debian/"));
        assert_eq!(mirror_of("URIs: http://mirror.example/debian-security"), None);
        assert_eq!(mirror_of("# deb http://mirror.example/debian bookworm main"), None);
    }
}
