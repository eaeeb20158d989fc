//! Ctrl-C and SIGTERM: the first ends the run and keeps its results, the second exits at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow};

/// Whether the user was asked to press Ctrl-C, or is told elsewhere what it does.
static IS_EXPECTED: AtomicBool = AtomicBool::new(false);

/// From now on, Ctrl-C needs no explanation.
#[cfg(any(feature = "live", feature = "mesh", feature = "tui"))]
pub(super) fn is_expected() {
    IS_EXPECTED.store(true, Ordering::Relaxed);
}

/// Sets `interrupted` on Ctrl-C and SIGTERM.
///
/// # Errors
/// If the signals cannot be handled.
pub(super) fn on_ctrl_c(interrupted: &Arc<AtomicBool>) -> Result<()> {
    let flag = Arc::clone(interrupted);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        if !IS_EXPECTED.load(Ordering::Relaxed) {
            eprintln!(
                "\ninterrupted: finishing this round and writing the run folder; press again to exit at once"
            );
        }
    })
    .map_err(|error| anyhow!("cannot listen for Ctrl-C: {error}"))
}
