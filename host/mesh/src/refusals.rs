//! Why peers are refused. Each reason is reported once: a refused peer tries again and again.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

use tokio_rustls::rustls::{CertificateError, Error};

/// Why a peer was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandshakeRefusal {
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
    /// Its bytes are not those of a host.
    Garbage,
}

impl HandshakeRefusal {
    /// Why a handshake failed; `None` if the other end left, as a probe of the port does.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        Some(match error.get_ref()?.downcast_ref()? {
            Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. },
            ) => HandshakeRefusal::Expired,
            Error::InvalidCertificate(_) => HandshakeRefusal::OtherCluster,
            Error::NoCertificatesPresented => HandshakeRefusal::NoCertificate,
            Error::AlertReceived(_) => HandshakeRefusal::Distrust,
            _ => HandshakeRefusal::Garbage,
        })
    }
}

impl fmt::Display for HandshakeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HandshakeRefusal::Expired => "its certificate has expired",
            HandshakeRefusal::OtherCluster => "its certificate is not of this cluster",
            HandshakeRefusal::NoCertificate => "it has no certificate",
            HandshakeRefusal::Distrust => "it does not take the certificate of this host",
            HandshakeRefusal::NoMember => "its name is not in this host's cluster.toml",
            HandshakeRefusal::Garbage => "what it sent is not what hosts send",
        })
    }
}

/// Reports each reason once.
pub(crate) struct RefusalLog {
    reported: Mutex<BTreeSet<HandshakeRefusal>>,
    report: fn(HandshakeRefusal),
}

impl RefusalLog {
    pub(crate) fn new(report: fn(HandshakeRefusal)) -> Self {
        RefusalLog { reported: Mutex::default(), report }
    }

    pub(crate) fn note(&self, refusal: Option<HandshakeRefusal>) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(refusal) = refusal.filter(|&refusal| reported.insert(refusal)) {
            (self.report)(refusal);
        }
    }
}
