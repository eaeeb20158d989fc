//! Books between hosts that may lose each other: the ledger's running sums, one at each end of a link.
//!
//! ```text
//! σ_j    what sender j has set aside for each of its audience on other hosts, since the run began    kept by the host of j
//! ρ_ij   what receiver i has taken of it                                                             kept by the host of i
//! i hears j:   w = σ_j − ρ_ij,  t_i ← t_i + w,  ρ_ij ← ρ_ij + w
//! ```
//!
//! Nothing is handed over, so an exchange that is lost or repeated costs nothing but time, and a host that goes back to any earlier
//! state of its own goes back with its σ and ρ: the others then take a negative difference until it has caught up, and
//! `Σt + Σ(σ_j − ρ_ij) = Σd` holds all the while. Sums are f64, and what is taken is a word of state: what does not fit it waits.
//!
//! Links inside a host keep what waits itself, as in one process.

use super::ledger::{Ledger, link_number};
use crate::device::{Block, Packed};
use crate::fab::state_part::VectorPart;
use crate::real::Real;

/// Words of state that one sum takes: itself, and what that leaves of it.
pub(in crate::fab) const SUM_WORDS: usize = 2;

/// The sums of one host, for one kind of vectors.
#[derive(Debug)]
pub(in crate::fab) struct HostBooks<S> {
    packed: Packed,
    /// What each agent of this host sets aside for one listener on another host, of its tracker.
    shares: Vec<f64>,
    /// How many of them each has.
    listeners: Vec<usize>,
    /// σ, packed as decisions are.
    sums: Vec<f64>,
    /// ρ, by link.
    taken: Vec<f64>,
    /// What was taken in the round that has begun, by link: it counts when the round is done.
    pending: Vec<(usize, Vec<S>)>,
}

impl<S: Real> HostBooks<S> {
    pub(in crate::fab) fn new(packed: Packed, ledger: &Ledger) -> Self {
        let (agents, own) = (packed.agents, packed.own);
        let shares = ledger.shares();
        let of = |sender: usize| {
            let rounded = |receiver: usize| S::from_f64(shares[receiver * agents + sender]).to_f64();
            let (near, far): (Vec<usize>, Vec<usize>) =
                ledger.audiences[sender].iter().partition(|&&receiver| own.has(receiver));
            // What is left when the sender has kept its part and given those of its host theirs, as rounded there.
            let rest = 1.0 - rounded(sender) - near.iter().map(|&receiver| rounded(receiver)).sum::<f64>();
            (rest / far.len().max(1) as f64, far.len())
        };
        let (shares, listeners) =
            (0..agents).map(|sender| if own.has(sender) { of(sender) } else { (0.0, 0) }).unzip();
        let sums = vec![0.0; packed.words()];
        let taken = vec![0.0; (agents - 1) * packed.words()];
        HostBooks { packed, shares, listeners, sums, taken, pending: Vec::new() }
    }

    /// σ of a vector when it set aside all its trackers but the latest `trackers`, and `now` beside them.
    pub(in crate::fab) fn sum(&self, vector: usize, now: Option<&[S]>, without: &[Vec<S>]) -> Vec<f64> {
        let share = self.shares[vector % self.packed.agents];
        let mut sum = self.sums[vector * self.packed.stride..][..self.packed.stride].to_vec();
        if let Some(now) = now {
            sum.iter_mut().zip(now).for_each(|(sum, t)| *sum += share * t.to_f64());
        }
        for later in without {
            sum.iter_mut().zip(later).for_each(|(sum, t)| *sum -= share * t.to_f64());
        }
        sum
    }

    /// Sets aside a share of the tracker of a vector.
    pub(in crate::fab) fn set_aside(&mut self, vector: usize, tracker: &[S]) {
        let share = self.shares[vector % self.packed.agents];
        let sums = &mut self.sums[vector * self.packed.stride..][..self.packed.stride];
        sums.iter_mut().zip(tracker).for_each(|(sum, t)| *sum += share * t.to_f64());
    }

    /// What the receiver of a link takes when the sender's sum is this.
    pub(in crate::fab) fn take(&mut self, link: usize, sum: &[f64]) -> Vec<S> {
        let before = &self.taken[link * self.packed.stride..][..self.packed.stride];
        let words: Vec<S> = sum.iter().zip(before).map(|(sum, before)| S::from_f64(sum - before)).collect();
        self.pending.push((link, words.clone()));
        words
    }

    /// Forgets what was taken since the last round.
    pub(in crate::fab) fn clear(&mut self) {
        self.pending.clear();
    }

    /// Notes what was taken, once the round is done.
    pub(in crate::fab) fn commit(&mut self) {
        for (link, words) in self.pending.drain(..) {
            let taken = &mut self.taken[link * self.packed.stride..][..self.packed.stride];
            taken.iter_mut().zip(words).for_each(|(taken, word)| *taken += word.to_f64());
        }
    }

    /// Adds `Σσ − Σρ` of the agents of this host to the words of a group, once for each listener.
    pub(in crate::fab) fn add_to(&self, group: usize, totals: &mut [f64]) {
        let Packed { agents, stride, own, .. } = self.packed;
        for agent in own.range() {
            let vector = group * agents + agent;
            let (sums, listeners) = (&self.sums[vector * stride..][..stride], self.listeners[agent] as f64);
            totals.iter_mut().zip(sums).for_each(|(total, sum)| *total += listeners * sum);
            for sender in (0..agents).filter(|&sender| !own.has(sender)) {
                let taken = &self.taken[link_number(agents, vector, sender) * stride..][..stride];
                totals.iter_mut().zip(taken).for_each(|(total, taken)| *total -= taken);
            }
        }
    }

    /// Its parts, with their words.
    pub(in crate::fab) fn parts(packed: Packed) -> [(VectorPart, usize); 2] {
        let words = SUM_WORDS * packed.words();
        [(VectorPart::Sums, words), (VectorPart::Taken, (packed.agents - 1) * words)]
    }

    /// Words of a part from `offset` on: of every vector first the sums as words, then what that leaves of them.
    pub(in crate::fab) fn read(&self, part: VectorPart, offset: usize, words: usize) -> Option<Vec<S>> {
        let part = match part {
            VectorPart::Sums => &self.sums,
            VectorPart::Taken => &self.taken,
            _ => return None,
        };
        let word = |at| {
            let (sum, is_rest) = place(self.packed.stride, at);
            split::<S>(part[sum])[usize::from(is_rest)]
        };
        Some((offset..offset + words).map(word).collect())
    }

    /// Replaces words of a part, and returns whether it has it; words that are whole sums come before what they leave.
    pub(in crate::fab) fn write(&mut self, part: VectorPart, offset: usize, words: &[S]) -> bool {
        let stride = self.packed.stride;
        let part = match part {
            VectorPart::Sums => &mut self.sums,
            VectorPart::Taken => &mut self.taken,
            _ => return false,
        };
        for (at, word) in (offset..).zip(words) {
            let (sum, is_rest) = place(stride, at);
            // Written twice it is the same.
            let whole = if is_rest { S::from_f64(part[sum]).to_f64() } else { 0.0 };
            part[sum] = whole + word.to_f64();
        }
        true
    }
}

/// Which sum the word at a place belongs to, and whether it is the rest of it.
const fn place(stride: usize, at: usize) -> (usize, bool) {
    let (vector, word) = (at / (SUM_WORDS * stride), at % (SUM_WORDS * stride));
    (vector * stride + word % stride, word >= stride)
}

/// A sum as words.
pub(in crate::fab) fn split<S: Real>(sum: f64) -> [S; SUM_WORDS] {
    let whole = S::from_f64(sum);
    [whole, S::from_f64(sum - whole.to_f64())]
}

/// Sums as words, all of them before what they leave.
pub(in crate::fab) fn to_words<S: Real>(sums: &[f64]) -> Vec<S> {
    let part = |part: usize| sums.iter().map(move |&sum| split::<S>(sum)[part]);
    part(0).chain(part(1)).collect()
}

/// Words as sums.
pub(in crate::fab) fn to_sums<S: Real>(words: &[S]) -> Vec<f64> {
    let (whole, rest) = words.split_at(words.len() / SUM_WORDS);
    whole.iter().zip(rest).map(|(whole, rest)| whole.to_f64() + rest.to_f64()).collect()
}

/// The shares that a device uses of a swarm whose links between hosts are kept here: none for receivers on other hosts.
pub(in crate::fab) fn near_shares(ledger: &Ledger, own: Block) -> Vec<f64> {
    let agents = ledger.audiences.len();
    let mut shares = ledger.shares();
    for (at, share) in shares.iter_mut().enumerate() {
        let (receiver, sender) = (at / agents, at % agents);
        if own.has(sender) && !own.has(receiver) {
            *share = 0.0;
        }
    }
    shares
}
