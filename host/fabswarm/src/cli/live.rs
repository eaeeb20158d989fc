//! The page in a browser, `--live`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use clap::{Arg, ArgMatches};
use fabswarm_view::Audience;

use super::interrupt;

/// Where the page is, unless told otherwise.
pub(super) const ADDRESS: &str = "127.0.0.1:8420";

/// `--live[=ADDRESS]`, in builds that serve the page.
pub(super) fn argument() -> Option<Arg> {
    let argument = Arg::new("live").long("live").value_name("ADDRESS").num_args(0..=1);
    let argument = argument.require_equals(true).default_missing_value(ADDRESS);
    cfg!(feature = "live").then(|| argument.help(format!(
        "Show it in a browser until Ctrl-C; --live=ADDRESS serves other machines too, with a token [default: {ADDRESS}]"
    )))
}

/// The page that shows a run while it goes on, if the command line asks for it. It is served until the process ends.
#[derive(Default)]
pub(super) struct LivePage {
    served: Option<(String, Arc<dyn Audience>)>,
}

impl LivePage {
    /// Serves what the command line asks for.
    #[cfg(feature = "live")]
    pub(super) fn start(matches: &ArgMatches) -> Result<Self> {
        use fabswarm_live::{Server, StartMode};
        let Some(address) = matches.get_one::<String>("live") else { return Ok(Self::default()) };
        let server = Server::start(address, StartMode::Follow)?;
        eprintln!("live page: {}", server.url());
        Ok(Self { served: Some((server.url().to_owned(), server.audience())) })
    }

    #[cfg(not(feature = "live"))]
    pub(super) fn start(_: &ArgMatches) -> Result<Self> {
        Ok(Self::default())
    }

    pub(super) fn audience(&self) -> Option<Arc<dyn Audience>> {
        self.served.as_ref().map(|(_, audience)| Arc::clone(audience))
    }

    /// Serves until Ctrl-C, if the page is served.
    pub(super) fn keep_page_open(&self, interrupted: &AtomicBool) {
        let Some((url, _)) = &self.served else { return };
        if !interrupted.load(Ordering::Relaxed) {
            eprintln!("the run stays at {url} until Ctrl-C");
        }
        interrupt::is_expected();
        while !interrupted.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(50));
        }
    }
}
