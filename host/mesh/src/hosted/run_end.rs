//! Why a run is over on this host.

use crate::message::Response;

/// Why a run is over on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Its starter ended it.
    Ended,
    /// Its starter is gone.
    Abandoned,
    /// It cannot go on here.
    Failed(String),
}

impl RunEnd {
    /// The response to requests that come too late.
    pub(super) fn refusal(&self) -> Response {
        Response::Refused(match self {
            RunEnd::Failed(what) => what.clone(),
            RunEnd::Ended | RunEnd::Abandoned => "the run is over on this host".to_owned(),
        })
    }
}
