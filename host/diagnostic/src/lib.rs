//! An error message with its remedy, for errors that nobody matches on.
//!
//! Code that branches on the kind of an error keeps an enum of its own. Everything that only reaches the user is a [`Diagnostic`], so
//! that the line `help: …` is written in one place and text is never searched for it.

use std::error::Error;
use std::fmt;
use std::path::Path;

/// A fault and its remedy. Its text ends in a line `help: …` if there is something to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    what: String,
    remedy: Option<String>,
}

impl Diagnostic {
    /// An error that the user can do something about.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: Some(remedy.into()) }
    }

    /// An error without a remedy.
    pub fn bare(what: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: None }
    }

    /// An error about the file at `path`, which its text names first.
    pub fn of_file(path: &Path, what: impl fmt::Display, remedy: impl Into<String>) -> Self {
        Self::new(format!("{}: {what}", path.display()), remedy)
    }

    /// The same error with `context` and a colon before it.
    #[must_use]
    pub fn within(self, context: impl fmt::Display) -> Self {
        Self { what: format!("{context}: {}", self.what), ..self }
    }

    /// The message without the remedy.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The remedy.
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)?;
        self.remedy.iter().try_for_each(|remedy| write!(formatter, "\nhelp: {remedy}"))
    }
}

impl Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedy_is_the_last_line_and_context_comes_first() {
        let error = Diagnostic::of_file(Path::new("a.toml"), "no key `x`", "add it").within("run 3");
        assert_eq!(error.to_string(), "run 3: a.toml: no key `x`\nhelp: add it");
        assert_eq!((error.what(), error.remedy()), ("run 3: a.toml: no key `x`", Some("add it")));
    }
}
