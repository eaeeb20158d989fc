//! Ctrl-C, or being told to terminate: the first ends the run and keeps what it has, the second ends everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow};

/// A flag that Ctrl-C and SIGTERM set.
pub(super) fn on_ctrl_c() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!(
            "\ninterrupted: ending this round and writing the run folder; once more to drop everything"
        );
    })
    .map_err(|error| anyhow!("cannot listen for Ctrl-C: {error}"))?;
    Ok(interrupted)
}
