//! Why peers are refused. Each reason is reported once: a refused peer tries again and again.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError};

use tokio_rustls::rustls::{CertificateError, Error};

/// The reason for refusing a peer whose certificate is of this cluster.
pub(crate) const NO_MEMBER: &str = "its name is not in this host's cluster.toml";

/// Why a handshake failed; `None` if the other end left, as a probe of the port does.
pub(crate) fn of_handshake(error: &io::Error) -> Option<&'static str> {
    Some(match error.get_ref()?.downcast_ref()? {
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "its certificate has expired"
        }
        Error::InvalidCertificate(_) => "its certificate is not of this cluster",
        Error::NoCertificatesPresented => "it has no certificate",
        Error::AlertReceived(_) => "it does not take the certificate of this host",
        _ => "what it sent is not what hosts send",
    })
}

/// Reports each reason once.
pub(crate) struct RefusalLog {
    reported: Mutex<BTreeSet<&'static str>>,
    report: fn(&str),
}

impl RefusalLog {
    pub(crate) fn new(report: fn(&str)) -> Self {
        RefusalLog { reported: Mutex::default(), report }
    }

    pub(crate) fn note(&self, reason: &'static str) {
        if self.reported.lock().unwrap_or_else(PoisonError::into_inner).insert(reason) {
            (self.report)(reason);
        }
    }
}
