//! The names of types: each stands for one thing in the whole tree.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use crate::step;

/// Every crate has its own error.
const SHARED: [&str; 1] = ["Error"];

/// Fails if two files of the product define types of one name. Tests, examples and fuzz targets have names of their own.
pub(crate) fn check() -> Result<()> {
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in step::output_of("git", &["ls-files", "*.rs"])?.lines().filter(|path| is_product(path)) {
        let text = step::read(path)?;
        let mut names: Vec<&str> = text.lines().filter_map(defined).collect();
        names.sort_unstable();
        names.dedup();
        for name in names.into_iter().filter(|name| !SHARED.contains(name)) {
            owners.entry(name.to_owned()).or_default().push(path.to_owned());
        }
    }
    let twice = owners.iter().filter(|(_, files)| files.len() > 1);
    let twice: Vec<String> = twice.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect();
    ensure!(twice.is_empty(), "two types have one name; rename one of each:\n{}", twice.join("\n"));
    Ok(())
}

fn is_product(path: &str) -> bool {
    let is_beside = ["examples/", "fuzz/"].iter().any(|folder| path.starts_with(folder));
    !is_beside && !path.contains("/tests/") && !path.ends_with("tests.rs") && !path.ends_with("build.rs")
}

/// The type that a line of a file's top level defines.
fn defined(line: &str) -> Option<&str> {
    let mut words = line
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .filter(|word| !word.is_empty());
    let is_outermost = line.starts_with(|letter: char| letter.is_ascii_lowercase());
    let kind = words.find(|word| !["pub", "crate", "super", "in", "self"].contains(word))?;
    (is_outermost && ["struct", "enum", "trait", "type", "union"].contains(&kind))
        .then(|| words.next())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_definitions_of_types_name_types() {
        let cases = [
            ("pub(super) struct Outbox<const N: usize> {", Some("Outbox")),
            ("pub(in super::super) enum Turn {", Some("Turn")),
            ("type Rows<S> = Vec<S>;", Some("Rows")),
            ("    struct Inner;", None),
            ("/// struct Told", None),
            ("use crate::structure::Thing;", None),
        ];
        for (line, name) in cases {
            assert_eq!(defined(line), name, "{line}");
        }
    }
}
