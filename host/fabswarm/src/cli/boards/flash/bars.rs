//! A bar for each board that is flashed.

use fabswarm_flash::FlashStep;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// The bars of all boards; they are gone when this is dropped.
pub(super) struct FlashBars {
    all: MultiProgress,
    bars: Vec<ProgressBar>,
}

impl FlashBars {
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let all = MultiProgress::new();
        let style = ProgressStyle::with_template("{prefix} {bar:30} {bytes:>11}/{total_bytes:<11} {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = |name: &str| {
            let bar = all.add(ProgressBar::new(0)).with_style(style.clone());
            bar.set_prefix(name.to_owned());
            bar
        };
        let bars = names.map(bar).collect();
        Self { all, bars }
    }

    pub(super) fn step(&self, index: usize, step: FlashStep) {
        let Some(bar) = self.bars.get(index) else { return };
        match step {
            FlashStep::More(bytes) => bar.inc_length(bytes),
            FlashStep::Now(what) => bar.set_message(what),
            FlashStep::Done(bytes) => bar.inc(bytes),
        }
    }
}

impl Drop for FlashBars {
    fn drop(&mut self) {
        // What is printed afterwards stands alone.
        let _ = self.all.clear();
    }
}
