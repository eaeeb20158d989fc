//! When packets were sent and received, as near to the hardware as a driver lets us look.

use embassy_time::{Duration, Instant};

/// The time from the call that sends a packet to its first bit, measured on a board's own packets: boards of a kind take the same.
///
/// Without a stamp by hardware it includes the time that a driver takes to report the end of a packet. A receiver takes as long, so both cancel out.
#[derive(Clone, Copy, Debug)]
pub struct SendDelay(Duration);

impl SendDelay {
    /// Measurements that the mean goes back to: interrupts delay single ones.
    const SMOOTHED: u32 = 8;

    /// Begins with a guess.
    #[must_use]
    pub const fn new(guess: Duration) -> Self {
        Self(guess)
    }

    /// Takes in a packet of `airtime` that was passed to the driver at `begun` and was out at `ended`.
    pub fn measure(&mut self, begun: Instant, ended: Instant, airtime: Duration) {
        if let Some(delay) = ended.checked_duration_since(begun + airtime) {
            self.0 = (self.0 * (Self::SMOOTHED - 1) + delay) / Self::SMOOTHED;
        }
    }

    /// When a packet was passed to its sender's driver, if it took `airtime` and was in at `ended`.
    #[must_use]
    pub fn sent_at(&self, ended: Instant, airtime: Duration) -> Instant {
        ended.checked_sub(airtime + self.0).unwrap_or(ended)
    }
}

/// Turns the stamps of a radio's own microsecond counter into times of the board's clock.
///
/// Both count the same crystal from different starts. A task sees a packet some time after its stamp: the shortest such time so far
/// is taken for the difference of the counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct StampClock {
    shortest_us: Option<u32>,
}

impl StampClock {
    /// Beyond this a task was not late: the radio has restarted its counter.
    const RESTARTED_US: u32 = 1_000_000;

    /// When a packet that a task sees at `now` was stamped, by the board's clock.
    pub fn stamped_at(&mut self, now: Instant, stamp_us: u32) -> Instant {
        // Both counters wrap.
        let since = (now.as_micros() as u32).wrapping_sub(stamp_us);
        let shortest = match self.shortest_us {
            Some(shortest) if since.wrapping_sub(shortest) < Self::RESTARTED_US => shortest,
            _ => since,
        };
        self.shortest_us = Some(shortest);
        let late = Duration::from_micros(since.wrapping_sub(shortest).into());
        now.checked_sub(late).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_delay_is_found_and_taken_off() {
        let us = Duration::from_micros;
        let mut delay = SendDelay::new(us(400));
        for packet in 0..60u64 {
            let begun = Instant::from_micros(10_000 * packet);
            // One in ten is late.
            let late = if packet % 10 == 3 { 160 } else { 0 };
            delay.measure(begun, begun + us(270 + late + 32 * packet), us(32 * packet));
        }
        let sent = Instant::from_micros(5_000_000);
        let error = delay.sent_at(sent + us(270 + 640), us(640)).as_micros().abs_diff(sent.as_micros());
        assert!(error < 40, "{error} us");
    }

    /// A task that comes late does not change when a packet arrived; counters may wrap, and start anew.
    #[test]
    fn stamps_do_not_depend_on_when_a_task_looks() {
        let mut clock = StampClock::default();
        let start = u64::from(u32::MAX) - 50_000;
        for (epoch, offset) in [(0, 7_000_000u64), (1, 900_000_000)] {
            for packet in 0..20u64 {
                let arrived = start + epoch * 10_000_000 + 10_000 * packet;
                let late = [0, 3, 900, 40, 0][packet as usize % 5];
                let at = clock.stamped_at(Instant::from_micros(arrived + late), (arrived - offset) as u32);
                assert_eq!(at, Instant::from_micros(arrived), "packet {packet}");
            }
        }
    }
}
