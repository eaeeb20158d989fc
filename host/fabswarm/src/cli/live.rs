//! The page in a browser: `--live`; and `--foxglove`.

use clap::{Arg, value_parser};
use std::path::PathBuf;

#[cfg(not(feature = "live"))]
pub(super) use absent::LivePage;
#[cfg(feature = "live")]
pub(super) use present::LivePage;

/// Where the page is, unless told otherwise.
pub(super) const ADDRESS: &str = "127.0.0.1:8420";

/// `--live[=ADDRESS]`.
pub(super) fn argument() -> Arg {
    serving("live", ADDRESS).help(format!(
        "Show it in a browser until Ctrl-C; --live=ADDRESS serves other machines too, with a token [default: {ADDRESS}]"
    ))
}

/// A flag that serves a run at the address that it may name.
fn serving(name: &'static str, address: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("ADDRESS")
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value(address)
}

/// Where Foxglove looks first.
const FOXGLOVE_ADDRESS: &str = "127.0.0.1:8765";

/// `--foxglove[=ADDRESS]`.
pub(super) fn foxglove_argument() -> Arg {
    serving("foxglove", FOXGLOVE_ADDRESS)
        .hide_short_help(true)
        .help(format!(
            "Serve it to Foxglove (open connection, Foxglove WebSocket) until Ctrl-C [default: {FOXGLOVE_ADDRESS}]"
        ))
}

/// The folder of a run.
pub(super) fn folder() -> Arg {
    Arg::new("run")
        .value_name("RUN")
        .required(true)
        .help("Folder of the run")
        .value_parser(value_parser!(PathBuf))
}

#[cfg(feature = "live")]
mod present {
    use super::super::interrupt;
    use anyhow::Result;
    use clap::ArgMatches;
    use fabswarm_live::{FoxgloveServer, Play, Server};
    use fabswarm_view::Audience;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    /// What shows a run while it goes on: the page, Foxglove or both.
    #[derive(Debug)]
    pub(in crate::cli) struct LivePage {
        page: Option<Server>,
        foxglove: Option<FoxgloveServer>,
    }

    impl LivePage {
        /// Serves what the command line asks for, if it does.
        pub(in crate::cli) fn start(matches: &ArgMatches) -> Result<Option<Self>> {
            let address = |name| matches.get_one::<String>(name);
            let page = address("live").map(|address| Server::start(address, Play::Follow)).transpose()?;
            let foxglove = address("foxglove").map(|address| FoxgloveServer::start(address)).transpose()?;
            if page.is_none() && foxglove.is_none() {
                return Ok(None);
            }
            let served = Self { page, foxglove };
            served.urls().for_each(|(what, url)| eprintln!("{what}: {url}"));
            Ok(Some(served))
        }

        fn urls(&self) -> impl Iterator<Item = (&'static str, &str)> {
            let page = self.page.iter().map(|page| ("live page", page.url()));
            page.chain(self.foxglove.iter().map(|foxglove| ("Foxglove", foxglove.url())))
        }

        pub(in crate::cli) fn audience(&self) -> Arc<dyn Audience> {
            let page = self.page.iter().map(Server::audience);
            Arc::new(page.chain(self.foxglove.iter().map(FoxgloveServer::audience)).collect::<Vec<_>>())
        }

        /// Serves until Ctrl-C.
        pub(in crate::cli) fn stay(&self, interrupted: &AtomicBool) {
            if !interrupted.load(Ordering::Relaxed) {
                let urls: Vec<&str> = self.urls().map(|(_, url)| url).collect();
                eprintln!("the run stays at {} until Ctrl-C", urls.join(" and "));
            }
            interrupt::is_expected();
            while !interrupted.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

#[cfg(not(feature = "live"))]
mod absent {
    use anyhow::{Result, bail};
    use clap::ArgMatches;
    use fabswarm_view::Audience;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// There is no page in this build.
    #[derive(Debug)]
    pub(in crate::cli) enum LivePage {}

    impl LivePage {
        pub(in crate::cli) fn start(matches: &ArgMatches) -> Result<Option<Self>> {
            if ["live", "foxglove"].iter().any(|name| matches.contains_id(name)) {
                bail!(
                    "this build of fabswarm has no live page\nhelp: build it with `cargo build --release --features live`"
                );
            }
            Ok(None)
        }

        pub(in crate::cli) fn audience(&self) -> Arc<dyn Audience> {
            match *self {}
        }

        pub(in crate::cli) fn stay(&self, _: &AtomicBool) {
            match *self {}
        }
    }
}
