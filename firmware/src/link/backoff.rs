//! When to send on a channel that others use too.

use super::AirKind;
use embassy_time::{Duration, Instant};

/// Attempts of a packet to find a free channel.
const ATTEMPTS: u32 = 5;
/// The unit of pauses. It is longer than a radio is deaf between its look at the channel and its first bit.
const UNIT: Duration = Duration::from_micros(320);
/// Pauses before the first look have up to 2⁵ units, and up to 2⁸ before the last: broadcasts are not repeated, and agents whose rounds
/// end together want to send together. (`macMinBE` and `macMaxBE` of IEEE 802.15.4, which begins with 2³.)
const EXPONENTS: (u32, u32) = (5, 8);

/// Unslotted CSMA/CA as IEEE 802.15.4 describes it: every look at the channel comes after a random pause, and after each that finds it
/// busy the pauses grow.
#[derive(Debug)]
pub(super) struct Backoff {
    /// By how much a packet may be late, where each is sent in a slot.
    slots: Option<Duration>,
    random: u32,
}

impl Backoff {
    /// Creates the backoff of a radio that is not told yet whose it is.
    pub(super) const fn new() -> Self {
        Self { slots: None, random: 1 }
    }

    /// Seeds the pauses by agent and boot, so that no two boards draw the same ones.
    pub(super) fn start(&mut self, sender: u16, boot: u32, air: AirKind) {
        self.slots = match air {
            AirKind::Slots { late } => Some(late),
            AirKind::Host | AirKind::Shared => None,
        };
        self.random = u32::from(sender) << 16 ^ boot;
    }

    /// Whether the time of a packet that was to be sent at `at` has passed: it would tell a wrong time, in the slot of another board.
    pub(super) fn is_late(&self, at: Instant) -> bool {
        self.slots.is_some_and(|late| Instant::now() > at + late)
    }

    /// The pause before attempt number `attempt`, counted from 0, to find a free channel; `None` if the packet is to be dropped.
    /// In slots there is one look, and no pause.
    pub(super) fn pause(&mut self, attempt: u32) -> Option<Duration> {
        if self.slots.is_some() {
            return (attempt == 0).then_some(Duration::MIN);
        }
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (first, last) = EXPONENTS;
        // The high bits are the random ones.
        let units = self.random >> (u32::BITS - (first + attempt).min(last));
        (attempt < ATTEMPTS).then(|| UNIT * units)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    const SLOTS: AirKind = AirKind::Slots { late: Duration::from_millis(1) };
    /// Time on the air of the longest packet, and from a look at the channel to the first bit.
    const AIRTIME: Duration = Duration::from_micros(4256);
    const TURNAROUND: Duration = Duration::from_micros(192);

    /// The share of packets that arrive if `agents` agents repeatedly send at the same time.
    fn arriving(agents: u16, air: AirKind) -> f64 {
        let mut backoffs: Vec<Backoff> = (0..agents).map(|_| Backoff::new()).collect();
        (0..).zip(&mut backoffs).for_each(|(agent, backoff)| backoff.start(agent, 1, air));
        let (rounds, mut arrived) = (200, 0);
        for _ in 0..rounds {
            let mut looks = BTreeSet::new();
            for (agent, backoff) in backoffs.iter_mut().enumerate() {
                looks.insert((backoff.pause(0).unwrap(), agent, 0));
            }
            let mut sent: Vec<(Duration, Duration)> = Vec::new();
            while let Some((now, agent, attempt)) = looks.pop_first() {
                if !sent.iter().any(|(from, to)| (*from..*to).contains(&now)) {
                    sent.push((now + TURNAROUND, now + TURNAROUND + AIRTIME));
                } else if let Some(pause) = backoffs[agent].pause(attempt + 1) {
                    looks.insert((now + pause, agent, attempt + 1));
                }
            }
            let meets = |one: usize, other: usize| {
                one != other && sent[one].0 < sent[other].1 && sent[other].0 < sent[one].1
            };
            arrived += (0..sent.len()).filter(|&one| !(0..sent.len()).any(|other| meets(one, other))).count();
        }
        arrived as f64 / f64::from(rounds * u32::from(agents))
    }

    /// Regression: no agent waited before its first attempt, so agents that began together always collided.
    #[test]
    fn agents_that_want_to_send_at_once_do_not_collide() {
        for (agents, expected) in [(2, 0.9), (5, 0.9), (10, 0.85)] {
            let share = arriving(agents, AirKind::Shared);
            assert!(share > expected, "{share} of the packets of {agents} agents arrive");
        }
        // The test of the test: without pauses all of them collide.
        assert_eq!(arriving(10, SLOTS), 0.0);
    }

    #[test]
    fn pauses_grow_and_come_to_an_end() {
        let mut backoff = Backoff::new();
        backoff.start(3, 1, AirKind::Shared);
        let mut longest = [Duration::MIN; ATTEMPTS as usize];
        for _ in 0..1000 {
            for (attempt, longest) in (0..).zip(&mut longest) {
                *longest = backoff.pause(attempt).unwrap().max(*longest);
            }
        }
        assert_eq!(longest, [31, 63, 127, 255, 255].map(|units| UNIT * units));
        assert_eq!(backoff.pause(ATTEMPTS), None);
    }

    #[test]
    fn a_packet_in_its_slot_waits_for_nobody() {
        let mut backoff = Backoff::new();
        backoff.start(3, 1, SLOTS);
        assert_eq!((backoff.pause(0), backoff.pause(1)), (Some(Duration::MIN), None));
    }
}
