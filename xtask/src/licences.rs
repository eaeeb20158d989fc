//! Everything in the repository is the project's own: fails on a file whose header names another copyright.

use std::fs;

use anyhow::{Result, bail};

use crate::step;

/// Files that may name a copyright: the licences themselves, assets with their licence beside them, and this file.
const ALLOWED: [&str; 7] = [
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "host/large/LICENSE-APACHE",
    "host/large/LICENSE-MIT",
    "host/large/src/data/sample.rs",
    "host/large/src/data/sample/LICENSE",
    "xtask/src/licences.rs",
];

/// Marks of a header that names an author or another project.
const MARKS: [&str; 5] = ["copyright", "©", "(c) 1", "(c) 2", "@license"];

/// Bytes at the start of a file that are its header.
const HEADER: usize = 2000;

pub(crate) fn check() -> Result<()> {
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
        bail!(
            "these files name a copyright, and nothing in this repository is borrowed:\n{}",
            found.join("\n")
        );
    }
    Ok(())
}

/// The line of a file's header that names a copyright.
fn foreign(bytes: &[u8]) -> Option<String> {
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
    use super::foreign;

    #[test]
    fn headers_of_others_are_found() {
        for header in [
            "//\n// Copyright (c) 2023 Somebody\n//",
            "/*! https://example.org/plot (v1.6) */",
            "# SPDX-FileCopyrightText: 2020 Somebody",
            " * @license MIT",
        ] {
            assert!(foreign(header.as_bytes()).is_some(), "{header}");
        }
        assert_eq!(foreign(b"//! (c) stands for a column."), None);
        assert_eq!(foreign("x\n".repeat(1500).as_bytes()), None);
    }
}
