//! Swarms on several hosts, over Zenoh: large agents, and boards.
//!
//! Every host runs `fabswarm host` and owns a block of neighbouring agents; `fabswarm train --hosts` and `fabswarm run --hosts` start
//! a run on them and keep its folder. Links of a round follow from the scenario, so every host knows what it must send and what it will get
//! ([`fabswarm_large::training::block`]). What there is to agree on is who may go on to which round.
//!
//! | module | what |
//! |---|---|
//! | [`message`] | what hosts ask each other, and what they answer |
//! | [`mod@line`] | the one way from a host to another: a question, and answers to it |
//! | [`certificates`] | who belongs to a cluster |
//! | [`mod@tunnel`], [`strangers`] | TLS between machines, and who was refused |
//! | [`chunks`] | parcels in pieces that can be asked for again |
//! | [`hosted`] | a run on this host, as others see it |
//! | [`worker`], [`host_device`] | the rounds of a run on this host, and where it computes them |
//! | [`boards`] | boards on other hosts, and what a host with boards does |
//! | [`daemon`] | `fabswarm host`: waits for runs |
//! | [`cluster`] | the hosts of a run, as seen by who started it |
//! | [`hosts_file`], [`local`] | which hosts, or as many processes on this machine |
//!
//! **Asked, not told.** A host never sends what it was not asked for: who needs something asks for it when it has room, and asks
//! again for what did not come. Every question may be repeated, lost or late without harm. A host listens and never dials; who asks
//! dials, so no two processes dial each other.

pub mod boards;
pub mod certificates;
pub mod chunks;
pub mod cluster;
pub mod daemon;
pub mod host_device;
pub mod hosted;
pub mod hosts_file;
pub mod line;
pub mod local;
pub mod message;
mod near;
pub mod strangers;
mod tunnel;
pub mod worker;
mod zenoh_line;

use std::path::PathBuf;

use fabswarm_large::device;
use fabswarm_large::training;

/// Why hosts cannot work together.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {what}\nhelp: {remedy}", path = path.display())]
    HostsFile { path: PathBuf, what: String, remedy: String },
    #[error("`--hosts {given}`: {what}\nhelp: {remedy}")]
    HostList { given: String, what: String, remedy: &'static str },
    #[error("{path}: {what}\nhelp: {remedy}", path = path.display())]
    Cluster { path: PathBuf, what: String, remedy: String },
    #[error(
        "{address} is beyond this machine, and nothing would protect what travels\nhelp: make certificates with `fabswarm host new-cluster`, and add `--cluster FOLDER`"
    )]
    Unprotected { address: String },
    #[error(
        "cannot listen on {address}: {what}\nhelp: name a free address of this machine, such as 127.0.0.1:7447"
    )]
    Listen { address: String, what: String },
    #[error(
        "host {host} at {address} cannot be reached: {what}\nhelp: see that `fabswarm host --listen {address}` runs there, that nothing between the two refuses the port, and that both have folders of the same `fabswarm host new-cluster`"
    )]
    Unreachable { host: String, address: String, what: String },
    #[error(
        "host {host} has not answered for {seconds} s\nhelp: see that it runs and is not stopped; `fabswarm host status` asks all hosts"
    )]
    Silent { host: String, seconds: u64 },
    #[error("host {host} is gone: {what}\nhelp: start `fabswarm host` there again")]
    Gone { host: String, what: String },
    #[error("host {host}: {what}")]
    Refused { host: String, what: String },
    #[error(
        "host {host} sent something this build does not understand: {what}\nhelp: run the same build of fabswarm on every host"
    )]
    Malformed { host: String, what: String },
    #[error(
        "cannot start a host on this machine: {0}\nhelp: see that the system lets processes be started and loopback ports be used"
    )]
    Child(String),
    #[error("the run is over")]
    Over,
    #[error(transparent)]
    Training(#[from] training::Error),
}

impl From<Error> for device::Error {
    fn from(error: Error) -> Self {
        device::Error::Hosts(error.to_string())
    }
}
