//! Faults of a scenario.

use fabswarm_diagnostic::Diagnostic;
use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueSource {
    /// A line of a file.
    File(PathBuf, usize),
    /// A flag of the command line.
    Flag(String),
    /// An argument of a function.
    Argument(String),
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Flag(flag) => write!(f, "--{flag}"),
            Self::Argument(name) => f.write_str(name),
        }
    }
}

impl ValueSource {
    /// Refuses what came from here.
    pub(super) fn refuse(&self, what: impl fmt::Display, remedy: impl Into<String>) -> Error {
        Error::Invalid(Diagnostic::new(format!("{self}: {what}"), remedy))
    }
}

/// A fault of a scenario, its place, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is for another command, whose steps do not suit this one.
    #[error(transparent)]
    OtherCommand(Diagnostic),
    /// The file cannot be read, or it or a flag sets what cannot be.
    #[error(transparent)]
    Invalid(Diagnostic),
}
