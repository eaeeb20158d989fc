//! The senders whose frames an agent took, for a host that replays the flight.

use crate::sizes::MEMBER_BYTES;
use fabswarm_shared::agent::Received;

/// The senders of this round and of the next.
#[derive(Default)]
pub(crate) struct FlightLog {
    taken: [u8; MEMBER_BYTES],
    /// Senders whose frames wait for the next round.
    early: [u8; MEMBER_BYTES],
    round: u32,
    /// A round that the agent left without ending it, with its senders.
    left: Option<(u32, [u8; 2 * MEMBER_BYTES])>,
}

impl FlightLog {
    /// Notes what became of a frame, with the agent's round after it. Returns whether there is a round for [`Self::take_left`],
    /// which must be taken before the next frame.
    pub(crate) fn note(&mut self, sender: u16, received: Option<Received>, round: u32) -> bool {
        if round != self.round {
            // The swarm was ahead, and the agent has left its round without ending it.
            self.left = Some((self.round, self.end_round(round)));
            (self.taken, self.early, self.round) = ([0; MEMBER_BYTES], [0; MEMBER_BYTES], round);
        }
        let set = match received {
            Some(Received::Taken) => &mut self.taken,
            Some(Received::Early) => &mut self.early,
            _ => return self.left.is_some(),
        };
        if let Some(byte) = set.get_mut(usize::from(sender / 8)) {
            *byte |= 1 << (sender % 8);
        }
        self.left.is_some()
    }

    /// Takes the round that the agent last left without ending it, and whose frames it took in that.
    pub(crate) fn take_left(&mut self) -> Option<(u32, [u8; 2 * MEMBER_BYTES])> {
        self.left.take()
    }

    /// Ends the round and returns whose frames were taken in it, and whose frames waited for the next.
    pub(crate) fn end_round(&mut self, round: u32) -> [u8; 2 * MEMBER_BYTES] {
        let mut senders = [0; 2 * MEMBER_BYTES];
        senders[..MEMBER_BYTES].copy_from_slice(&self.taken);
        senders[MEMBER_BYTES..].copy_from_slice(&self.early);
        self.round = round.wrapping_add(1);
        self.taken = core::mem::take(&mut self.early);
        senders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the second of two rounds that an agent left between two looks at the log took the place of the first.
    #[test]
    fn every_round_that_was_left_is_told() {
        let mut log = FlightLog::default();
        assert!(!log.note(1, Some(Received::Taken), 0));
        assert!(!log.note(2, Some(Received::Stale), 0));
        assert!(log.note(3, Some(Received::Taken), 4), "round 0 was left");
        let (round, senders) = log.take_left().unwrap();
        assert_eq!((round, senders[0]), (0, 1 << 1));
        assert!(log.note(5, Some(Received::Early), 9), "round 4 was left");
        let (round, senders) = log.take_left().unwrap();
        assert_eq!((round, senders[0]), (4, 1 << 3));
        assert_eq!(log.take_left(), None);
        assert!(!log.note(6, Some(Received::Taken), 9));
        let senders = log.end_round(9);
        assert_eq!((senders[0], senders[MEMBER_BYTES]), (1 << 6, 1 << 5));
    }
}
