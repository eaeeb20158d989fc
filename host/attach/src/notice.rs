//! Notices to the user while the host waits for something. The program shows them: this library prints nothing.

use std::sync::OnceLock;

static SHOW: OnceLock<fn(&str)> = OnceLock::new();

/// Sets the function that shows notices. Without one they are dropped; a second one is ignored.
pub fn show_notices(show: fn(&str)) {
    let _ = SHOW.set(show);
}

pub(crate) fn notify(text: &str) {
    if let Some(show) = SHOW.get() {
        show(text);
    }
}
