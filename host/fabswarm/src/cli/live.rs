//! The page in a browser, `--live`, and `--foxglove`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use clap::{Arg, ArgMatches};
use fabswarm_view::Audience;

use super::interrupt;

/// Where the page is, unless told otherwise.
#[cfg(feature = "live")]
pub(super) const ADDRESS: &str = "127.0.0.1:8420";

/// `--live[=ADDRESS]` and `--foxglove[=ADDRESS]`, in builds that serve them.
#[cfg(feature = "live")]
pub(super) fn arguments() -> [Arg; 2] {
    // Where Foxglove looks first.
    const FOXGLOVE_ADDRESS: &str = "127.0.0.1:8765";
    let serving = |name: &'static str, address: &'static str| {
        let argument = Arg::new(name).long(name).value_name("ADDRESS").num_args(0..=1);
        argument.require_equals(true).default_missing_value(address)
    };
    [
        serving("live", ADDRESS).help(format!(
            "Show it in a browser until Ctrl-C; --live=ADDRESS serves other machines too, with a token [default: {ADDRESS}]"
        )),
        serving("foxglove", FOXGLOVE_ADDRESS).hide_short_help(true).help(format!(
            "Serve it to Foxglove (open connection, Foxglove WebSocket) until Ctrl-C [default: {FOXGLOVE_ADDRESS}]"
        )),
    ]
}

#[cfg(not(feature = "live"))]
pub(super) fn arguments() -> [Arg; 0] {
    []
}

/// What shows a run while it goes on: the page, Foxglove, both or nothing. They serve until the process ends.
#[derive(Default)]
pub(super) struct LivePage {
    urls: Vec<String>,
    audiences: Vec<Arc<dyn Audience>>,
}

impl LivePage {
    /// Serves what the command line asks for.
    #[cfg(feature = "live")]
    pub(super) fn start(matches: &ArgMatches) -> Result<Self> {
        use fabswarm_live::{Server, StartMode};
        let mut page = Self::default();
        if let Some(address) = matches.get_one::<String>("live") {
            let server = Server::start(address, StartMode::Follow)?;
            page.add("live page", server.url(), server.audience());
        }
        if let Some(address) = matches.get_one::<String>("foxglove") {
            let server = Server::start_foxglove(address)?;
            page.add("Foxglove", server.url(), server.audience());
        }
        Ok(page)
    }

    #[cfg(not(feature = "live"))]
    pub(super) fn start(_: &ArgMatches) -> Result<Self> {
        Ok(Self::default())
    }

    #[cfg(feature = "live")]
    fn add(&mut self, what: &str, url: &str, audience: Arc<dyn Audience>) {
        eprintln!("{what}: {url}");
        self.urls.push(url.to_owned());
        self.audiences.push(audience);
    }

    pub(super) fn audience(&self) -> Arc<dyn Audience> {
        Arc::new(self.audiences.clone())
    }

    /// Serves until Ctrl-C, if anything is served.
    pub(super) fn stay(&self, interrupted: &AtomicBool) {
        if self.urls.is_empty() {
            return;
        }
        if !interrupted.load(Ordering::Relaxed) {
            eprintln!("the run stays at {} until Ctrl-C", self.urls.join(" and "));
        }
        interrupt::is_expected();
        while !interrupted.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(50));
        }
    }
}
