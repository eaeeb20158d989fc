//! Says once that somebody who does not belong to the cluster was refused, and why: not for every attempt, since whoever is refused
//! tries again.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

use tokio_rustls::rustls::{CertificateError, Error};

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

impl Refusal {
    /// Why a handshake failed; nothing where the other end left, as somebody does who looks whether a port is open.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        Some(match error.get_ref()?.downcast_ref()? {
            Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. },
            ) => Refusal::Expired,
            Error::InvalidCertificate(_) => Refusal::OtherCluster,
            Error::NoCertificatesPresented => Refusal::NoCertificate,
            Error::AlertReceived(_) => Refusal::Distrust,
            _ => Refusal::Garbage,
        })
    }
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

/// Reports each reason once.
pub(crate) struct RefusalLog {
    reported: Mutex<BTreeSet<Refusal>>,
    report: fn(Refusal),
}

impl RefusalLog {
    pub(crate) fn new(report: fn(Refusal)) -> Self {
        RefusalLog { reported: Mutex::default(), report }
    }

    pub(crate) fn note(&self, refusal: Option<Refusal>) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(refusal) = refusal.filter(|&refusal| reported.insert(refusal)) {
            (self.report)(refusal);
        }
    }
}
