//! Hosts that are lost and come back.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::line::PATIENCE;

/// The reaction to the loss of a host.
#[derive(Clone, Copy, Debug)]
pub struct LossPolicy {
    /// The others go on, and it may come back; where this is false the run fails.
    pub outlives: bool,
    /// Silence after which a host counts as lost.
    pub patience: Duration,
    /// Receives losses and returns.
    pub observe: fn(&LossEvent),
}

impl Default for LossPolicy {
    fn default() -> Self {
        LossPolicy { outlives: false, patience: PATIENCE, observe: |_| {} }
    }
}

/// A host is lost, or is back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossEvent {
    /// It is lost since `round`.
    Lost { host: String, round: u32, why: String },
    /// It goes on after `round`, from the state it had or from that of the last checkpoint.
    Back { host: String, round: u32, has_memory: bool },
}

#[derive(Debug, Default)]
pub(super) struct LostHosts(Mutex<BTreeMap<usize, Loss>>);

#[derive(Clone, Copy, Debug)]
struct Loss {
    round: u32,
    /// It may come back once it responds after this time.
    since: Instant,
    /// Pause before the next attempt, should it fail again.
    pause: Duration,
}

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl LostHosts {
    fn all(&self) -> MutexGuard<'_, BTreeMap<usize, Loss>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a loss. Returns whether the host was present before.
    pub(super) fn add(&self, host: usize, round: u32) -> bool {
        let loss = Loss { round, since: Instant::now(), pause: FIRST_PAUSE };
        self.all().insert(host, loss).is_none()
    }

    pub(super) fn has(&self, host: usize) -> bool {
        self.all().contains_key(&host)
    }

    pub(super) fn hosts(&self) -> Vec<usize> {
        self.all().keys().copied().collect()
    }

    /// Whether a lost host that answered at this time may be asked to come back.
    pub(super) fn may_return(&self, host: usize, answered: Instant) -> bool {
        self.all().get(&host).is_some_and(|loss| answered > loss.since)
    }

    /// Postpones the next attempt to bring a host back, twice as long each time.
    pub(super) fn postpone(&self, host: usize) {
        if let Some(loss) = self.all().get_mut(&host) {
            loss.since = Instant::now() + loss.pause;
            loss.pause = LONGEST_PAUSE.min(2 * loss.pause);
        }
    }

    /// Records that a host is back. Returns the round it was lost in.
    pub(super) fn remove(&self, host: usize) -> Option<u32> {
        self.all().remove(&host).map(|loss| loss.round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_fails_again_is_left_alone_for_longer() {
        let losses = LostHosts::default();
        assert!(losses.add(1, 7) && !losses.add(1, 7) && losses.has(1) && losses.hosts() == [1]);
        let soon = Instant::now() + Duration::from_millis(1);
        assert!(losses.may_return(1, soon) && !losses.may_return(0, soon));
        losses.postpone(1);
        assert!(!losses.may_return(1, soon) && losses.may_return(1, soon + FIRST_PAUSE));
        losses.postpone(1);
        assert!(!losses.may_return(1, soon + FIRST_PAUSE) && losses.may_return(1, soon + 2 * FIRST_PAUSE));
        assert_eq!((losses.remove(1), losses.remove(1)), (Some(7), None));
    }
}
