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
            fs::write(&draft, backports()?).with_context(|| format!("cannot write {}", draft.display()))?;
            step::as_root("install", &["-m", "644", &draft.to_string_lossy(), BACKPORTS])?;
        }
        from = vec!["-t", "bookworm-backports"];
    }
    step::as_root("apt-get", &["update", "-qq"])?;
    let install = ["install", "-y", "-qq", "--no-install-recommends"];
    step::as_root("apt-get", &[&install[..], &from[..], &[PROGRAM]].concat())
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
