//! Says once that somebody who does not belong to the cluster was refused, and why: not for every attempt, since whoever is refused
//! tries again.
//!
//! Zenoh refuses links by itself and tells nobody but its log, so that is read here.

use std::collections::BTreeSet;
use std::fmt::{self, Debug};
use std::sync::{Mutex, PoisonError};

use tracing_core::dispatcher::{self, Dispatch};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, LevelFilter, Metadata, Subscriber};

/// Modules of Zenoh that refuse somebody.
const TLS: &str = "zenoh_link_tls::unicast";
const LINKS: &str = "zenoh_transport::unicast::establishment::accept";
const DEADLINE: &str = "zenoh_transport::unicast::manager";
const MEMBERS: &str = "zenoh::net::routing::interceptor::access_control";

/// Why somebody was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// Its certificate has expired.
    Expired,
    /// Its certificate is not of this cluster.
    OtherCluster,
    /// It has no certificate.
    NoCertificate,
    /// It does not take the certificate of this host.
    Distrust,
    /// Its certificate is of this cluster, and its name is not.
    NoMember,
    /// What it sends is not what hosts send.
    Garbage,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Expired => "its certificate has expired",
            Refusal::OtherCluster => "its certificate is not of this cluster",
            Refusal::NoCertificate => "it has no certificate",
            Refusal::Distrust => "it does not take the certificate of this host",
            Refusal::NoMember => "its name is not in this host's cluster.toml",
            Refusal::Garbage => "what it sent is not what hosts send",
        })
    }
}

/// From now on every reason for which somebody is refused is told to `report`, the first time.
pub fn watch(report: fn(Refusal)) {
    let watch = StrangerWatch { reported: Mutex::default(), report };
    // Where another program has a log of Zenoh, that has it.
    let _ = dispatcher::set_global_default(Dispatch::new(watch));
}

struct StrangerWatch {
    reported: Mutex<BTreeSet<Refusal>>,
    report: fn(Refusal),
}

impl Subscriber for StrangerWatch {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && [TLS, LINKS, DEADLINE, MEMBERS].contains(&metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = MessageText::default();
        event.record(&mut message);
        let Some(refusal) = refusal(event.metadata().target(), &message.0) else { return };
        let is_new = self.reported.lock().unwrap_or_else(PoisonError::into_inner).insert(refusal);
        if is_new {
            (self.report)(refusal);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The text of a line of a log.
#[derive(Default)]
struct MessageText(String);

impl Visit for MessageText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// Why somebody was refused, where a line of Zenoh's log says that.
fn refusal(target: &str, message: &str) -> Option<Refusal> {
    let has = |what: &str| message.contains(what);
    // Who looks whether a port is open leaves without a word.
    let is_gone = has("eof") || has("os error");
    match target {
        MEMBERS => has("did not match any configured ACL subject").then_some(Refusal::NoMember),
        DEADLINE => has("Failed to accept link before deadline").then_some(Refusal::Garbage),
        _ if is_gone => None,
        LINKS => (!has("New transport link accepted")).then_some(Refusal::Garbage),
        _ if has("Accepted TLS connection") => None,
        _ if has("certificate expired") => Some(Refusal::Expired),
        _ if has("invalid peer certificate") => Some(Refusal::OtherCluster),
        _ if has("peer sent no certificates") => Some(Refusal::NoCertificate),
        _ if has("received fatal alert") => Some(Refusal::Distrust),
        _ => Some(Refusal::Garbage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_log_are_told_apart() {
        let hint = "Hint: increase the system open file limit.";
        let tls = |what: &str| refusal(TLS, &format!("{what}. {hint}"));
        assert_eq!(
            tls(
                "invalid peer certificate: certificate expired: verification time 9 (UNIX), but certificate is not valid after 5"
            ),
            Some(Refusal::Expired)
        );
        assert_eq!(tls("invalid peer certificate: UnknownIssuer"), Some(Refusal::OtherCluster));
        assert_eq!(tls("peer sent no certificates"), Some(Refusal::NoCertificate));
        assert_eq!(tls("received fatal alert: UnknownCA"), Some(Refusal::Distrust));
        assert_eq!(tls("received corrupt message of type InvalidContentType"), Some(Refusal::Garbage));
        assert_eq!(tls("tls handshake eof"), None);
        assert_eq!(tls("Connection reset by peer (os error 104)"), None);
        assert_eq!(refusal(TLS, "Accepted TLS connection on 127.0.0.1:1: 127.0.0.1:2."), None);
        assert_eq!(refusal(LINKS, "New transport link accepted from a to b"), None);
        assert_eq!(refusal(LINKS, "Decoding error"), Some(Refusal::Garbage));
        assert_eq!(refusal(DEADLINE, "New transport opened between a and b"), None);
    }
}
