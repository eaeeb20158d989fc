//! Fails where files name different versions of fabswarm, or of the Rust that it needs.

use anyhow::{Context, Result, bail, ensure};

use crate::step::{self, read};

pub(crate) fn check() -> Result<()> {
    let manifest = read("Cargo.toml")?;
    let find = |key| value(&manifest, key).with_context(|| format!("Cargo.toml has no `{key}`"));
    let (version, rust) = (find("version")?, find("rust-version")?);
    let toolchain = read("rust-toolchain.toml")?;
    let channel = value(&toolchain, "channel").context("rust-toolchain.toml has no `channel`")?;
    // An older compiler would refuse the manifests; a newer one would let code in that the stated version cannot build.
    ensure!(
        channel == rust || channel.starts_with(&format!("{rust}.")),
        "rust-toolchain.toml has {channel}, and Cargo.toml rust-version {rust}"
    );
    let manifests = step::output_of("git", &["ls-files", "*Cargo.toml"])?;
    for path in manifests.lines() {
        let text = read(path)?;
        for (key, expected) in [("version", version), ("rust-version", rust)] {
            let inherited = format!("{key}.workspace = true");
            if !text.lines().any(|line| line == inherited) && value(&text, key) != Some(expected) {
                bail!("{path}: `{key}` must be \"{expected}\", as in Cargo.toml");
            }
        }
    }
    let stated = [
        ("README.md", format!("minimum Rust version is {rust}")),
        ("docs/install.md", format!("({rust} or newer)")),
        ("CITATION.cff", format!("version: {version}\n")),
        ("CHANGELOG.md", format!("\n## [{version}]")),
    ];
    for (path, words) in stated {
        ensure!(read(path)?.contains(&words), "{path} must have `{}`", words.trim());
    }
    println!("    fabswarm {version}, Rust {rust}: {} manifests", manifests.lines().count());
    Ok(())
}

/// The text of a key at the start of a line.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
    rest.split('"').next()
}
