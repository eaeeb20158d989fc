//! Standard output. A closed pipe (`fabswarm run | head`) does not end a run; a full disk is reported at the end.

use std::fmt;
#[cfg(feature = "boards")]
use std::io::IsTerminal;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

static FAILURE: OnceLock<io::Error> = OnceLock::new();
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Prints nothing from now on.
pub(super) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Whether nothing is printed.
pub(super) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Writes `text` like `print!`, but remembers the first failure instead of panicking.
pub(super) fn write(text: fmt::Arguments<'_>) {
    if is_quiet() {
        return;
    }
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_fmt(text).and_then(|()| stdout.flush())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        // Later failures have the same cause.
        let _ = FAILURE.set(error);
    }
}

/// Prints a line to standard error while a command waits for boards or their firmware.
#[cfg(feature = "boards")]
pub(super) fn notice(text: &str) {
    // Clears a progress bar in the same line.
    let clear = if io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    eprintln!("{clear}{text}");
}

/// Why something could not be written, if anything could not.
pub(super) fn failure() -> Option<&'static io::Error> {
    FAILURE.get()
}

/// A progress bar on a terminal, and nothing elsewhere or with `--quiet`.
pub(super) fn bar(length: u64, template: &str) -> ProgressBar {
    let target = if is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template(template).expect("a fixed template is valid");
    ProgressBar::with_draw_target(Some(length), target).with_style(style.progress_chars("━╸─"))
}

/// Lines of cells, each column as wide as its widest cell. The cells of the columns `right` end in one line, as numbers should.
pub(super) fn aligned(lines: &[Vec<String>], right: &[usize]) -> impl Iterator<Item = String> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    lines.iter().map(move |line| {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if right.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    })
}
