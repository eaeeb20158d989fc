//! Ctrl-C and SIGTERM: the first ends the run and keeps its results, the second exits at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

/// Whether the user was asked to press Ctrl-C, or is told elsewhere what it does.
static IS_EXPECTED: AtomicBool = AtomicBool::new(false);

/// A signal that follows another so soon is the same once more: `timeout` sends it to a program and then to all of its group.
const ECHO: Duration = Duration::from_millis(500);

/// From now on, Ctrl-C needs no explanation.
pub(super) fn is_expected() {
    IS_EXPECTED.store(true, Ordering::Relaxed);
}

/// A flag that Ctrl-C and SIGTERM set.
pub(super) fn on_ctrl_c() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::default();
    set_on_ctrl_c(&interrupted)?;
    Ok(interrupted)
}

/// Sets `interrupted` on Ctrl-C and SIGTERM.
pub(super) fn set_on_ctrl_c(interrupted: &Arc<AtomicBool>) -> Result<()> {
    let flag = Arc::clone(interrupted);
    let mut first: Option<Instant> = None;
    ctrlc::set_handler(move || {
        if first.is_some_and(|first| first.elapsed() < ECHO) {
            return;
        }
        first.get_or_insert_with(Instant::now);
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
