//! `fabswarm show`: the page of a run that another process makes, or has made.

use super::{flags, live};
use anyhow::Result;
use clap::{ArgMatches, Command};
use fabswarm_live::{Server, StartMode};
use fabswarm_view::LogTail;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// How often the log of a run that goes on is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(super) fn command() -> Command {
    let address = "Address of the page; an address beyond this machine asks for a token";
    Command::new("show")
        .about("Show a run in the browser: follow it, at most a second behind, or play it back")
        .arg(flags::run_folder())
        .arg(flags::option("address", "ADDRESS", address).default_value(live::ADDRESS))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let folder: &PathBuf = matches.get_one("run").expect("clap asks for it");
    let address: &String = matches.get_one("address").expect("it has a default");
    let mut log = LogTail::open(folder)?;
    let mut messages = log.read()?;
    let mode = if log.is_complete() { StartMode::FromStart } else { StartMode::Follow };
    let server = Server::start(address, mode)?;
    let audience = server.audience();
    eprintln!("{}: {} until Ctrl-C", folder.display(), server.url());
    loop {
        messages.drain(..).for_each(|message| audience.publish(message));
        thread::sleep(LOOK_EVERY);
        if !log.is_complete() {
            messages = log.read()?;
        }
    }
}
