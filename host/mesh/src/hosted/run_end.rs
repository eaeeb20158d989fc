//! Why a run is over on this host.

use crate::message::Answer;

/// Why a run is over on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Whoever started it said so.
    Ended,
    /// Whoever started it is gone.
    Abandoned,
    /// It cannot go on here.
    Failed(String),
}

impl RunEnd {
    /// What is answered to questions that come too late.
    pub(super) fn refusal(&self) -> Answer {
        Answer::Refused(match self {
            RunEnd::Failed(what) => what.clone(),
            RunEnd::Ended | RunEnd::Abandoned => "the run is over on this host".to_owned(),
        })
    }
}
