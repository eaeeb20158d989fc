//! Constants of a broadcast ledger among batched agents.

/// A push that survives lost and late frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    /// κ, the share of its tracker that an agent keeps.
    pub keep: f64,
    /// Rounds a frame may come late and still count.
    pub late_rounds: u32,
    /// For each agent, who may ever hear it.
    pub audiences: Vec<Vec<usize>>,
}

impl Ledger {
    /// Rounds whose broadcasts must be kept, the present one included.
    pub fn depth(&self) -> usize {
        self.late_rounds as usize + 1
    }

    /// `[agents, agents]`: what sender j sets aside for receiver i of its tracker, at `i · agents + j`, and at i = j what it
    /// keeps. Every column sums to one.
    pub fn shares(&self) -> Vec<f64> {
        let agents = self.audiences.len();
        let mut shares = vec![0.0; agents * agents];
        for (sender, audience) in self.audiences.iter().enumerate() {
            let share = (1.0 - self.keep) / audience.len().max(1) as f64;
            audience.iter().for_each(|receiver| shares[receiver * agents + sender] = share);
            shares[sender * agents + sender] = 1.0 - share * audience.len() as f64;
        }
        shares
    }

    /// Bytes that vectors of `words` words of all of `agents` agents take beside their state, `word_bytes` bytes per word.
    pub fn bytes(&self, agents: usize, words: u64, word_bytes: u64) -> u64 {
        let (links, history) = (agents.saturating_sub(1) as u64, 2 * self.depth() as u64);
        (links + history) * words * word_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_gives_away_what_it_does_not_keep() {
        let ledger = Ledger { keep: 0.9, late_rounds: 0, audiences: vec![vec![1, 2], vec![2], vec![]] };
        let shares = ledger.shares();
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{shares:?}");
        for sender in 0..3 {
            close(shares.iter().skip(sender).step_by(3).sum(), 1.0);
        }
        close(shares[3], 0.05);
        close(shares[7], 0.1);
        close(shares[8], 1.0);
    }
}
