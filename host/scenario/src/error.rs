//! What can be wrong with a scenario.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file.
    File(PathBuf, usize),
    /// A flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Flag(flag) => write!(f, "--{flag}"),
        }
    }
}

/// What is wrong with a scenario, where, and what to put there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the scenario {path}: {source}\nhelp: name a TOML file, or leave it out for the default scenario", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is for another command, whose steps do not suit this one.
    #[error(
        "{path} is a scenario of `fabswarm {other}`: it sets {key}\nhelp: use `fabswarm {other} {path}`, or remove what only that command reads",
        path = path.display()
    )]
    OtherCommand {
        /// The file.
        path: PathBuf,
        /// A key of the other command.
        key: &'static str,
        /// The other command.
        other: &'static str,
    },
    /// The file is not TOML.
    #[error(
        "{origin}: {message}\nhelp: `fabswarm run --print-scenario` prints a valid scenario to start from"
    )]
    Syntax {
        /// Where.
        origin: Origin,
        /// The message of the TOML parser.
        message: String,
    },
    /// A key or section that stands there twice.
    #[error("{origin}: `{name}` is set twice, first {first}\nhelp: keep one of the two")]
    Duplicate {
        /// Where.
        origin: Origin,
        /// The key, or the line of the section.
        name: String,
        /// Where it stands first.
        first: String,
    },
    /// A key or section that no scenario has.
    #[error("{origin}: there is no {what} `{path}`\nhelp: {remedy}")]
    Unknown {
        /// Where.
        origin: Origin,
        /// `key` or `section`.
        what: &'static str,
        /// The name as written.
        path: String,
        /// The nearest valid name.
        remedy: String,
    },
    /// A value of another type.
    #[error("{origin}: {path} = {value} has the wrong type\nhelp: give {expected} instead of {got}")]
    WrongType {
        /// Where.
        origin: Origin,
        /// The key.
        path: String,
        /// The value as written.
        value: String,
        /// The type it must have.
        expected: &'static str,
        /// The type it has.
        got: &'static str,
    },
    /// A value that is not one of the key's choices.
    #[error("{origin}: {path} = {value} is not a valid choice\nhelp: {remedy}")]
    NoSuchChoice {
        /// Where.
        origin: Origin,
        /// The key.
        path: String,
        /// The value as written.
        value: String,
        /// The valid values, and the nearest of them.
        remedy: String,
    },
    /// A number outside its range.
    #[error("{origin}: {path} = {value} is out of range\nhelp: give {limit}")]
    OutOfRange {
        /// Where.
        origin: Origin,
        /// The key.
        path: String,
        /// The value as written.
        value: String,
        /// The range.
        limit: super::limits::Limit,
    },
    /// A text that is not in the key's form.
    #[error("{origin}: {path} = {value} cannot be read: {reason}\nhelp: give {form}")]
    Malformed {
        /// Where.
        origin: Origin,
        /// The key.
        path: String,
        /// The value as written.
        value: String,
        /// What is wrong with it.
        reason: String,
        /// What it must look like.
        form: &'static str,
    },
    /// A file of another format version, or of none.
    #[error("{origin}: {found}, and this fabswarm reads version {expected}\nhelp: {remedy}")]
    Version {
        /// Where.
        origin: Origin,
        /// The version it has.
        found: String,
        /// The version it must have.
        expected: i64,
        /// What to do.
        remedy: &'static str,
    },
}
