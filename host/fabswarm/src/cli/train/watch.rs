//! The log of a training run, and who looks at it.

use std::sync::Arc;

use fabswarm_sim::record::{self, RunFolder};
use fabswarm_view::message::{RunMessage, Topic};
use fabswarm_view::{Audience, LOG_FILE, RecordedRun, RunWatch};

/// Begins the log of the run in `folder` with the message `first`. One that goes on from round `resumed` keeps what its log says
/// until then.
pub(super) fn start(
    folder: &RunFolder,
    first: RunMessage,
    resumed: Option<u32>,
    audience: Option<Arc<dyn Audience>>,
) -> Result<RunWatch, record::Error> {
    let mut before = vec![first];
    // A log that cannot be read is no reason to end: the tables hold the same numbers.
    let earlier = resumed.and_then(|_| RecordedRun::read(folder.path()).ok()).unwrap_or_default();
    let is_kept = |message: &RunMessage| match message.topic {
        Topic::Run | Topic::End => false,
        // The evaluation of a checkpoint's round is repeated.
        Topic::Evaluation => Some(message.round) < resumed.map(u64::from),
        _ => Some(message.round) <= resumed.map(u64::from),
    };
    before.extend(earlier.messages.into_iter().filter(is_kept));
    RunWatch::start(before, folder.growing_file(LOG_FILE)?, audience)
}
