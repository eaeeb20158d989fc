//! Standard output. A closed pipe (`fabswarm run | head`) does not end a run; a full disk is reported at the end.

use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;

static FAILURE: OnceLock<io::Error> = OnceLock::new();

/// Writes `text` like `print!`, but remembers the first failure instead of panicking.
pub(super) fn write(text: fmt::Arguments<'_>) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_fmt(text).and_then(|()| stdout.flush())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        // Later failures have the same cause.
        let _ = FAILURE.set(error);
    }
}

/// Why something could not be written, if anything could not.
pub(super) fn failure() -> Option<&'static io::Error> {
    FAILURE.get()
}
