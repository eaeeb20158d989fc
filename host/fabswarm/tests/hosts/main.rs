//! Swarms on several hosts, as real processes on loopback.
#![cfg(feature = "mesh")]

mod strangers;
#[path = "../support/command.rs"]
mod support;
mod training;

use std::process::Command;
use support::{Folder, Running};

/// The command with one thread: many processes share the machine.
fn fabswarm(folder: &Folder, line: &str) -> Command {
    let mut command = folder.fabswarm(line);
    command.env("RAYON_NUM_THREADS", "1");
    command
}

/// `fabswarm host`, until it is dropped.
struct Host {
    process: Running,
    address: String,
}

impl Host {
    /// Waits until `command` listens.
    fn start(command: Command) -> Self {
        let mut process = Running::start(command);
        process.wait_for("the address", |process| process.printed().contains('\n'));
        let printed = process.printed();
        let first = printed.lines().next().unwrap();
        let address = first.strip_prefix("listening on ").expect(first).to_owned();
        Self { process, address }
    }

    /// Waits until it has taken part in so many runs.
    #[track_caller]
    fn wait_for_runs(&self, runs: usize) {
        let lines = || -> Vec<String> { self.process.printed().lines().skip(1).map(str::to_owned).collect() };
        support::wait_for("the end of the run", || lines().len() == 2 * runs);
        let is_run = |run: &[String]| run[0].starts_with("run ") && run[1] == "the run has ended";
        assert!(lines().chunks(2).all(is_run), "{:?}", lines());
    }
}

/// Writes `hosts.toml` for hosts at these addresses.
fn hosts_file(folder: &Folder, addresses: [&str; 2]) {
    let hosts = [("h0", addresses[0]), ("h1", addresses[1])];
    let host = hosts.map(|(name, address)| format!("[[host]]\nname = \"{name}\"\naddress = \"{address}\"\n"));
    folder.write("hosts.toml", host.concat());
}
