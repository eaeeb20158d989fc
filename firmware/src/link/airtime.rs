//! The legal limit on a radio's airtime.

use embassy_time::{Duration, Instant};

/// The time over which laws count airtime.
const WINDOW: Duration = Duration::from_secs(3600);
/// Airtime is summed up over bins of this length.
const BIN: Duration = Duration::from_secs(10);
/// The bins of a window, and the one that is being filled.
const BINS: usize = (WINDOW.as_ticks() / BIN.as_ticks()) as usize + 1;

/// Keeps a radio within its duty cycle: in any hour it sends no longer than the law allows, over resets too where a board keeps this in
/// memory that outlives them ([`AirtimeLimit::resume`]).
///
/// Slots are planned so that this drops next to nothing. It holds too where rounds have another pace, or a swarm another number of agents
/// than was planned for.
#[derive(Debug)]
pub struct AirtimeLimit {
    allowed: Duration,
    /// Airtime by bins, the newest at `newest % BINS`.
    used_us: [u32; BINS],
    /// Sum of the bins.
    sum: Duration,
    /// Number of the newest bin.
    newest: u64,
    /// Number of the bin in which the clock started.
    start: u64,
}

impl AirtimeLimit {
    /// Allows `per_mille` thousandths of every hour.
    #[must_use]
    pub const fn new(per_mille: u16) -> Self {
        let allowed = Duration::from_ticks(WINDOW.as_ticks() / 1000 * per_mille as u64);
        Self { allowed, used_us: [0; BINS], sum: Duration::from_ticks(0), newest: 0, start: 0 }
    }

    /// Goes on after a reset with what memory held before it, or anew if the memory was not kept. The time between counts as nothing,
    /// so that a board rather sends too little.
    pub fn resume(&mut self, per_mille: u16) {
        let sum: u64 = self.used_us.iter().copied().map(u64::from).sum();
        // Memory after a power cut holds anything.
        if Duration::from_micros(sum) == self.sum && self.sum <= WINDOW {
            self.start = self.newest;
        } else {
            *self = Self::new(per_mille);
        }
        self.allowed = Self::new(per_mille).allowed;
    }

    /// Whether a packet that takes `airtime` may be sent now. If so, it is counted.
    pub fn take(&mut self, now: Instant, airtime: Duration) -> bool {
        let number = self.start + now.as_ticks() / BIN.as_ticks();
        // Bins that have left the window. A clock that goes back moves nothing.
        for bin in (self.newest + 1..=number).take(BINS) {
            let place = &mut self.used_us[(bin % BINS as u64) as usize];
            self.sum -= Duration::from_micros(core::mem::take(place).into());
        }
        self.newest = self.newest.max(number);
        if self.sum + airtime > self.allowed {
            return false;
        }
        self.sum += airtime;
        self.used_us[(self.newest % BINS as u64) as usize] += airtime.as_micros() as u32;
        true
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// Tries a packet every `period_us` for four hours. Returns the number of attempts, and when packets were sent.
    fn sent(airtime: Duration, period_us: u64) -> (usize, Vec<Instant>) {
        let mut limit = AirtimeLimit::new(10);
        let tries = (0..4 * WINDOW.as_micros()).step_by(period_us as usize).map(Instant::from_micros);
        (tries.clone().count(), tries.filter(|&now| limit.take(now, airtime)).collect())
    }

    #[test]
    fn no_hour_has_more_than_the_law_allows() {
        let airtime = Duration::from_millis(400);
        let (_, sent) = sent(airtime, 700_000);
        for (index, &first) in sent.iter().enumerate() {
            let hour = sent[index..].iter().take_while(|&&at| at < first + WINDOW).count();
            assert!(hour as u32 * airtime <= Duration::from_secs(36), "{hour} packets from {first:?} on");
        }
        // And what the law allows is used: four times 90 packets, less what the bins lose.
        assert!(sent.len() >= 4 * 89, "{}", sent.len());
    }

    /// `boards plan` leaves room for one frame more: next to nothing is dropped then, as the last bin is counted for too long.
    #[test]
    fn what_was_planned_is_sent() {
        for airtime_us in [40_000, 110_000, 400_000, 2_301_952] {
            let spare_us = 36_000_000 - airtime_us;
            let period_us = (airtime_us * WINDOW.as_micros()).div_ceil(spare_us);
            let (tried, sent) = sent(Duration::from_micros(airtime_us), period_us);
            let dropped = tried - sent.len();
            assert!(1000 * dropped <= 3 * tried, "{dropped} of {tried}, {airtime_us} µs each");
        }
    }

    #[test]
    fn a_long_silence_frees_everything() {
        let mut limit = AirtimeLimit::new(10);
        let start = Instant::from_secs(5);
        assert!(limit.take(start, Duration::from_secs(36)));
        assert!(!limit.take(start + Duration::from_secs(3590), Duration::from_micros(1)));
        assert!(limit.take(start + Duration::from_secs(3620), Duration::from_secs(1)));
        assert!(limit.take(start + Duration::from_secs(3600 * 24 * 365), Duration::from_secs(36)));
        assert!(!limit.take(start, Duration::from_micros(1)), "the clock went back");
    }

    /// Regression: a board that was reset again and again sent as long as it liked.
    #[test]
    fn resets_do_not_refill_the_hour() {
        let (airtime, mut limit) = (Duration::from_millis(400), AirtimeLimit::new(10));
        let (mut sent, mut resets) = (0, 0);
        // A reset after every minute, for 59 minutes.
        while resets < 59 {
            sent += (0..60).filter(|&second| limit.take(Instant::from_secs(second), airtime)).count();
            limit.resume(10);
            resets += 1;
        }
        assert_eq!(sent, 90, "36 s of an hour");
        // The hour goes on meanwhile: bins are of 10 s, and the bin of a reset counts once.
        assert!(limit.take(Instant::from_secs(3600), airtime));
    }

    #[test]
    fn memory_that_was_lost_starts_anew() {
        let mut limit = AirtimeLimit::new(10);
        limit.used_us = [0xDEAD_BEEF; BINS];
        limit.resume(10);
        assert!(limit.take(Instant::from_secs(0), Duration::from_secs(36)));
        assert!(!limit.take(Instant::from_secs(0), Duration::from_millis(1)));
    }
}
