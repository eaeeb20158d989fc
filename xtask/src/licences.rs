//! Everything in the repository is the project's own: fails on a file whose header names another owner, and on a dependency
//! whose licence does not let everybody use it with ours.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::step;

/// Files that may name an owner: the licences themselves, and assets with their licence beside them.
const ALLOWED: [&str; 4] =
    ["LICENSE-APACHE", "LICENSE-MIT", "host/data/src/sample.rs", "host/data/src/sample/LICENSE"];

/// Marks of a header that names an author or another project; in two parts where a search for such headers would find this file.
const MARKS: [&str; 5] =
    [concat!("copy", "right"), "\u{a9}", concat!("(c)", " 1"), concat!("(c)", " 2"), concat!("@", "license")];

/// Bytes at the start of a file that are its header.
const HEADER: usize = 2000;

/// The first bytes of a file that is packed by gzip.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// Licences of dependencies that ask for no more than a notice, or, as the MPL, for the source of their own files.
const PERMITTED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

pub(crate) fn check() -> Result<()> {
    check_headers()?;
    for workspace in [".", "boards"] {
        check_dependencies(workspace)?;
    }
    Ok(())
}

/// Checks the licences of all crates that a workspace depends on under Linux.
fn check_dependencies(workspace: &str) -> Result<()> {
    let arguments = ["metadata", "--format-version=1", "--all-features", "--locked", "--quiet"];
    let linux = ["--filter-platform", "x86_64-unknown-linux-gnu"];
    let folder = step::root().join(workspace);
    let text = step::output_in(&folder, "cargo", &[&arguments[..], &linux].concat())?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let list = |value: &serde_json::Value| value.as_array().cloned().context("cargo lists no packages");
    let used = list(&metadata["resolve"]["nodes"])?;
    let mut refused = Vec::new();
    for package in list(&metadata["packages"])? {
        let licence = package["license"].as_str().unwrap_or("no licence");
        if used.iter().any(|node| node["id"] == package["id"]) && !is_permitted(licence) {
            refused.push(format!("{} {}: {licence}", package["name"], package["version"]));
        }
    }
    if !refused.is_empty() {
        bail!("these dependencies have other licences than those permitted here:\n{}", refused.join("\n"));
    }
    println!("    {workspace}: {} crates", used.len());
    Ok(())
}

/// Whether a licence leaves a choice that is permitted.
fn is_permitted(licence: &str) -> bool {
    let is_one = |name: &str| PERMITTED.contains(&name.trim_matches(['(', ')', ' ']));
    licence.split(" AND ").all(|part| part.replace(" OR ", "/").split('/').any(is_one))
}

fn check_headers() -> Result<()> {
    let mut found = Vec::new();
    for path in step::output_of("git", &["ls-files", "-z"])?.split('\0').filter(|path| !path.is_empty()) {
        if ALLOWED.iter().any(|allowed| path.starts_with(allowed)) {
            continue;
        }
        // A file that is deleted and not yet committed is listed too.
        let Ok(bytes) = fs::read(step::root().join(path)) else { continue };
        found.extend(foreign(&bytes).map(|line| format!("{path}: {line}")));
    }
    if !found.is_empty() {
        bail!("these files name an owner, and nothing in this repository is borrowed:\n{}", found.join("\n"));
    }
    Ok(())
}

/// The line of a file's header that names an owner.
fn foreign(bytes: &[u8]) -> Option<String> {
    // Packed data has no header, and may hold any bytes.
    if bytes.starts_with(&GZIP) {
        return None;
    }
    let header = String::from_utf8_lossy(&bytes[..bytes.len().min(HEADER)]).into_owned();
    let names_one = |line: &&str| {
        let line = line.to_lowercase();
        // Minified scripts begin with a comment that names where they are from.
        line.starts_with("/*! http") || MARKS.iter().any(|mark| line.contains(mark))
    };
    header.lines().find(names_one).map(|line| line.trim().chars().take(120).collect())
}

#[cfg(test)]
mod tests {
    use super::{MARKS, foreign, is_permitted};

    #[test]
    fn every_part_of_a_licence_must_leave_a_permitted_choice() {
        for licence in ["MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0", "MIT OR GPL-3.0-only"] {
            assert!(is_permitted(licence), "{licence}");
        }
        for licence in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "no licence", ""] {
            assert!(!is_permitted(licence), "{licence}");
        }
    }

    #[test]
    fn headers_of_others_are_found() {
        for mark in MARKS {
            let header = format!("//\n// SPDX-{}999 Somebody\n//", mark.to_uppercase());
            assert!(foreign(header.as_bytes()).is_some(), "{header}");
        }
        assert!(foreign(b"/*! https://example.org/plot (v1.6) */").is_some());
        assert_eq!(foreign(b"//! (c) stands for a column."), None);
        assert_eq!(foreign(b"\x1F\x8B\x08\n\xC2\xA9"), None);
        assert_eq!(foreign("x\n".repeat(1500).as_bytes()), None);
    }
}
