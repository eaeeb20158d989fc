//! Graphs that were recorded.

use super::Schedule;

/// Recorded graphs as bit masks: bit j of row i is set if agent i hears agent j.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    agents: usize,
    words_per_row: usize,
    rows: &'a [u64],
}

impl<'a> Trace<'a> {
    /// Words of one agent's row.
    pub const fn words_per_row(agents: usize) -> usize {
        agents.div_ceil(64)
    }

    /// Reads `rows` as one round after the other, one row per agent, lowest bits first. Returns `None` if they
    /// are not a whole number of rounds.
    pub fn new(agents: usize, rows: &'a [u64]) -> Option<Self> {
        let words_per_row = Self::words_per_row(agents);
        let per_round = words_per_row.checked_mul(agents)?;
        let whole = per_round > 0 && !rows.is_empty() && rows.len().is_multiple_of(per_round);
        whole.then_some(Self { agents, words_per_row, rows })
    }

    /// How many rounds were recorded. Later rounds repeat them.
    pub const fn rounds(&self) -> usize {
        self.rows.len() / (self.words_per_row * self.agents)
    }
}

impl Schedule for Trace<'_> {
    fn agents(&self) -> usize {
        self.agents
    }

    fn heard_by(&self, agent: usize, round: u32, mut visit: impl FnMut(usize)) {
        let row = (round as usize % self.rounds()) * self.agents + agent;
        let words = self.rows.iter().skip(row * self.words_per_row).take(self.words_per_row);
        for (word, &senders) in words.enumerate() {
            let all = u64::MAX >> 64usize.saturating_sub(self.agents - 64 * word);
            let own = if agent / 64 == word { 1 << (agent % 64) } else { 0 };
            let mut senders = senders & all & !own;
            while senders != 0 {
                visit(64 * word + senders.trailing_zeros() as usize);
                senders &= senders - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn masks_become_senders_and_repeat() {
        // Two rounds of three agents, self bits set.
        let rows = [0b011, 0b110, 0b101, 0b111, 0b010, 0b100];
        let trace = Trace::new(3, &rows).unwrap();
        let row = |agent, round| {
            let mut senders = Vec::new();
            trace.heard_by(agent, round, |sender| senders.push(sender));
            senders
        };
        assert_eq!(row(0, 0), [1]);
        assert_eq!(row(0, 1), [1, 2]);
        assert_eq!(row(2, 2), [0]);
        assert_eq!(trace.rounds(), 2);
    }

    #[test]
    fn half_a_round_is_refused() {
        assert!(Trace::new(3, &[0, 0]).is_none());
        assert!(Trace::new(3, &[]).is_none());
        assert!(Trace::new(0, &[1]).is_none());
    }
}
