//! Timeouts of silent boards.

use std::time::{Duration, Instant};

/// How long a board may be silent before its process is watched.
const WATCH_AFTER: Duration = Duration::from_secs(1);

/// Processor time that a silent board may use: a board that the machine does not let compute does not hang. The longest rounds, of
/// large problems on emulated boards, take a second or two.
const BUSY_LIMIT: Duration = Duration::from_secs(5);

/// How long a board may be silent without computing: it sleeps, or the machine has no time for it.
const IDLE_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct HangWatch {
    /// Since when the board is silent, and the processor time of its process when that was noticed.
    watched: Option<(Instant, Duration)>,
}

impl HangWatch {
    /// Whether a board hangs that has been silent since `since`, for `waited`, and has used `cpu_time` in its life.
    pub(crate) fn is_hung(&mut self, since: Instant, waited: Duration, cpu_time: Duration) -> bool {
        if waited < WATCH_AFTER {
            return false;
        }
        let (_, before) = *match &mut self.watched {
            Some(watched) if watched.0 == since => watched,
            watched => watched.insert((since, cpu_time)),
        };
        waited > IDLE_LIMIT || cpu_time.saturating_sub(before) > BUSY_LIMIT
    }
}

/// Silence after which a lost real board is reset: a board whose cable was unplugged still waits in its round. Resets every second
/// would keep a slow board from ever starting, so the waits grow.
const RESET_AFTER: Duration = Duration::from_secs(1);
const RESET_AFTER_MOST: Duration = Duration::from_secs(30);

/// When a lost board is reset, and reset again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResetTimer(Duration);

impl Default for ResetTimer {
    fn default() -> Self {
        Self(RESET_AFTER)
    }
}

impl ResetTimer {
    /// Whether to reset a board that has been silent for `waited` since the last reset. Each wait is twice as long as the one before.
    pub(crate) fn is_over(&mut self, waited: Duration) -> bool {
        let is_over = waited > self.0;
        if is_over {
            self.0 = (2 * self.0).min(RESET_AFTER_MOST);
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Regression: on a machine with little time, boards hung that were only slow.
    #[test]
    fn a_board_hangs_by_the_time_that_it_has_computed() {
        let since = Instant::now();
        let mut watch = HangWatch::default();
        let mut after = |waited: u32, computed: u32| watch.is_hung(since, waited * SECOND, computed * SECOND);
        // Processor time from before its silence does not count.
        assert!(!after(0, 100) && !after(2, 100));
        assert!(!after(59, 104), "it gets a tenth of a processor");
        assert!(after(6, 106), "it computes and does not answer");
        assert!(after(61, 100), "it sleeps");
        // It has answered, and is silent again.
        assert!(!watch.is_hung(since + SECOND, 3 * SECOND, 200 * SECOND));
    }

    #[test]
    fn a_lost_board_is_reset_less_and_less_often() {
        let mut timer = ResetTimer::default();
        let mut seconds = |_| (1..).find(|&waited| timer.is_over(waited * SECOND + SECOND / 2)).unwrap();
        let waits: Vec<u32> = (0..7).map(&mut seconds).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        assert!(!ResetTimer::default().is_over(SECOND / 2));
    }
}
