//! Errors about files of data sets and pretrained weights.

use std::fmt::Display;
use std::path::Path;

use fabswarm_diagnostic::Diagnostic;

/// Names the file or folder that could not be read or written.
pub(super) fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> Diagnostic + '_ {
    move |error| Diagnostic::of_file(path, error, "check that the path is right and can be read and written")
}

/// Names the file whose content is invalid.
pub(super) fn in_file<E: Display>(path: &Path) -> impl FnOnce(E) -> Diagnostic + '_ {
    move |what| Diagnostic::of_file(path, what, "check that it is the file you meant, and complete")
}
