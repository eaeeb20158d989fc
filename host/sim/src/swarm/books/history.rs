//! The running sums of agents in their last rounds, as fingerprints.

use fabswarm_shared::agent::Epoch;
use std::collections::VecDeque;

/// A sender's rounds that are remembered: older frames are beyond what an air delays.
pub(super) const HISTORY: usize = 4096;
/// Epochs that are remembered: a receiver may still be in the one before the sender's.
const EPOCHS: usize = 3;

/// Two linear forms of a vector's even words and two of its odd ones, modulo 2³². The narrowest payloads carry every other word
/// of σ, so a receiver may hold the two halves of different rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fingerprint(pub(super) [[u32; 2]; 2]);

impl Fingerprint {
    pub(super) fn plus(mut self, other: Self, factor: u32) -> Self {
        for (sum, form) in self.0.as_flattened_mut().iter_mut().zip(other.0.as_flattened()) {
            *sum = sum.wrapping_add(form.wrapping_mul(factor));
        }
        self
    }

    /// Whether each half is that of one of `others`.
    pub(super) fn is_made_of<'a>(&self, others: impl Iterator<Item = &'a Self> + Clone) -> bool {
        (0..2).all(|half| others.clone().any(|other| self.0[half] == other.0[half]))
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.plus(other, u32::MAX)
    }
}

/// The running sums of one agent in one epoch.
#[derive(Clone, Debug)]
pub(super) struct History {
    epoch: Epoch,
    /// Rounds and what σ was in them, in ascending order of rounds.
    pub(super) sums: VecDeque<(u32, Fingerprint)>,
}

impl History {
    /// The place of a round. Rounds rarely skip, so it is looked for first where it would be if none did.
    pub(super) fn place_of(&self, round: u32) -> Result<usize, usize> {
        let newest = self.sums.len().wrapping_sub(1);
        let back = self.sums.back().map_or(0, |&(last, _)| last.saturating_sub(round)) as usize;
        let guess = newest.wrapping_sub(back);
        match self.sums.get(guess) {
            Some(&(found, _)) if found == round => Ok(guess),
            _ => self.sums.binary_search_by_key(&round, |sum| sum.0),
        }
    }
}

/// The running sums of one agent in its last epochs; the newest comes last. Others' accounts are held against them.
#[derive(Clone, Debug, Default)]
pub(super) struct Histories(VecDeque<History>);

impl Histories {
    pub(super) fn of(&self, epoch: Epoch) -> Option<&History> {
        self.0.iter().find(|history| history.epoch == epoch)
    }

    /// The newest round that was entered.
    pub(super) fn newest_round(&self) -> u32 {
        self.0.back().and_then(|history| history.sums.back()).map_or(0, |newest| newest.0)
    }

    /// Whether the epoch was so long ago that nothing is remembered of it.
    pub(super) fn is_long_over(&self, epoch: Epoch) -> bool {
        self.0.len() == EPOCHS && self.0.iter().all(|history| history.epoch > epoch)
    }

    /// Enters the running sum of the epoch and round that the agent is in.
    pub(super) fn enter(&mut self, RunningSum { epoch, round, sigma }: RunningSum) {
        let sums = &mut self.begin(epoch).sums;
        match sums.back_mut() {
            Some(last) if last.0 >= round => last.1 = sigma,
            _ => {
                sums.push_back((round, sigma));
                if sums.len() > HISTORY {
                    sums.pop_front();
                }
            }
        }
    }

    /// The history of the epoch that the agent is in.
    fn begin(&mut self, epoch: Epoch) -> &mut History {
        if self.0.back().is_none_or(|history| history.epoch != epoch) {
            // An agent that restarts may come back to an epoch from before one that it has forgotten.
            let known = self.0.iter().position(|history| history.epoch == epoch);
            let history = known.and_then(|place| self.0.remove(place));
            self.0.push_back(history.unwrap_or(History { epoch, sums: VecDeque::new() }));
            if self.0.len() > EPOCHS {
                self.0.pop_front();
            }
        }
        let newest = self.0.len() - 1;
        &mut self.0[newest]
    }
}

/// The mass that an agent has given away by the start of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningSum {
    pub(super) epoch: Epoch,
    pub(super) round: u32,
    pub(super) sigma: Fingerprint,
}
