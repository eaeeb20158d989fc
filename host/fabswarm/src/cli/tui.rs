//! The run on this terminal: `--tui`.

use clap::{Arg, ArgAction};

#[cfg(not(feature = "tui"))]
pub(super) use absent::TerminalView;
#[cfg(feature = "tui")]
pub(super) use present::TerminalView;

/// `--tui`.
pub(super) fn argument() -> Arg {
    Arg::new("tui")
        .long("tui")
        .action(ArgAction::SetTrue)
        .help("Show the run on the whole terminal: curve, frames, agents and log; q ends it")
}

#[cfg(feature = "tui")]
mod present {
    use super::super::interrupt;
    use anyhow::{Context, Result, bail};
    use clap::ArgMatches;
    use fabswarm_tui::FullScreen;
    use fabswarm_view::Audience;
    use std::io::{self, IsTerminal};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// A run on the terminal.
    #[derive(Debug)]
    pub(in crate::cli) struct TerminalView(FullScreen);

    impl TerminalView {
        /// Takes the terminal over, if the command line asks for it.
        pub(in crate::cli) fn start(
            matches: &ArgMatches,
            interrupted: &Arc<AtomicBool>,
        ) -> Result<Option<Self>> {
            if !matches.get_flag("tui") {
                return Ok(None);
            }
            if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
                bail!(
                    "--tui needs a terminal for input and output\nhelp: leave it out where either is a pipe or a file"
                );
            }
            // A line about the signal would be written across the screen, which says it itself.
            interrupt::is_expected();
            let screen = FullScreen::open(Arc::clone(interrupted))
                .context("cannot take the terminal over\nhelp: leave --tui out")?;
            Ok(Some(Self(screen)))
        }

        pub(in crate::cli) fn audience(&self) -> Arc<dyn Audience> {
            self.0.audience()
        }

        /// Gives the terminal back. One that is gone needs nothing more.
        pub(in crate::cli) fn close(self) {
            let _ = self.0.close();
        }
    }
}

#[cfg(not(feature = "tui"))]
mod absent {
    use anyhow::{Result, bail};
    use clap::ArgMatches;
    use fabswarm_view::Audience;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// There is no full-screen view in this build.
    #[derive(Debug)]
    pub(in crate::cli) enum TerminalView {}

    impl TerminalView {
        pub(in crate::cli) fn start(matches: &ArgMatches, _: &Arc<AtomicBool>) -> Result<Option<Self>> {
            if matches.get_flag("tui") {
                bail!(
                    "this build of fabswarm has no full-screen view\nhelp: build it with `cargo build --release --features tui`"
                );
            }
            Ok(None)
        }

        pub(in crate::cli) fn audience(&self) -> Arc<dyn Audience> {
            match *self {}
        }

        pub(in crate::cli) fn close(self) {
            match self {}
        }
    }
}
