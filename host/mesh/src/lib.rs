//! Swarms of large agents on several hosts, over Zenoh.
//!
//! Every host runs `fabswarm host` and owns a block of neighbouring agents; `fabswarm train --hosts` starts a run on them and keeps its
//! folder. Links of a round follow from the scenario, so every host knows what it must send and what it will get
//! ([`fabswarm_large::training::block`]). They agree only on which round each may go on to.
//!
//! | module | what |
//! |---|---|
//! | [`message`] | requests and responses between hosts |
//! | `line` | the connection to another host: a request, and responses to it |
//! | [`certificates`] | the members of a cluster |
//! | `tunnel`, `refusals` | TLS between machines, and why a peer was refused |
//! | `chunks` | parcels in pieces that can be asked for again |
//! | `hosted` | a run on this host, as others see it |
//! | `worker` | the rounds of a run on this host |
//! | `state_answers` | what the starter of a run reads and replaces of its state |
//! | [`daemon`] | `fabswarm host`: waits for runs |
//! | [`cluster`] | the hosts of a run, as seen by the process that started it |
//! | [`hosts_file`], [`local`] | which hosts, or as many processes on this machine |
//!
//! **Pull, not push.** A host sends only what another requests. The requester asks when it has room, and asks again for what did not
//! come. Every request may be repeated, lost or late without harm. The requester dials and the host listens, so no two processes
//! dial each other.
//!
//! **Ours beside Zenoh**, and why:
//! - Chunks: Zenoh fragments messages too, but hands over whole ones. Of a response of 256 MiB whose link broke after 128 MiB the
//!   requester got nothing; a lost chunk of ours is asked for again by itself.
//! - Questions that are asked again: Zenoh's "reliable" is a marker. That query ended without an answer, and Zenoh, which had dialled
//!   anew within 10 ms, did not ask again.
//! - `Response::NotYet` and heartbeats: Zenoh's liveliness is that of a link. The token of a killed process vanished at once,
//!   that of a stopped one after the lease of 10 s, and that of one whose callback hung never (40 s).

pub mod certificates;
mod chunks;
pub mod cluster;
pub mod daemon;
mod hosted;
pub mod hosts_file;
mod line;
pub mod local;
pub mod message;
mod near;
mod refusals;
mod state_answers;
mod tunnel;
mod worker;
mod zenoh_line;

pub use hosted::RunEnd;

use std::fmt::Display;

use fabswarm_diagnostic::Diagnostic;
use fabswarm_large::training;

/// Why hosts cannot work together.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run is over.
    #[error("the run is over")]
    Over,
    /// A host cannot take part, or has failed.
    #[error(transparent)]
    Failed(#[from] Diagnostic),
}

impl Error {
    fn refused(host: &str, what: impl Display) -> Self {
        Error::Failed(Diagnostic::bare(format!("host {host}: {what}")))
    }

    fn gone(host: &str, what: impl Display) -> Self {
        Diagnostic::new(format!("host {host} is gone: {what}"), "start `fabswarm host` there again").into()
    }

    fn malformed(host: &str, what: impl Display) -> Self {
        let what = format!("host {host} sent something this build does not understand: {what}");
        Diagnostic::new(what, SAME_BUILD).into()
    }
}

const SAME_BUILD: &str = "run the same build of fabswarm on every host";

impl From<training::Error> for Error {
    fn from(error: training::Error) -> Self {
        Error::Failed(Diagnostic::bare(error.to_string()))
    }
}

impl From<Error> for Diagnostic {
    fn from(error: Error) -> Self {
        match error {
            Error::Failed(diagnostic) => diagnostic,
            over @ Error::Over => Diagnostic::bare(over.to_string()),
        }
    }
}
