//! Mixing by a broadcast ledger: what waits on links, and what was sent in the last rounds.

use std::collections::BTreeSet;
use std::ops::Range;

use fabswarm_shared::scalar::Scalar as _;

use crate::device::{BroadcastHistory, Descent, Device, Gradient, LedgerReception, Packed, Result};
use crate::fab::exchange::LedgerExchange;
use crate::fab::parcel::{ParcelPart, ParcelRoute, ParcelSink, ParcelSource};
use crate::fab::state_part::VectorPart;
use crate::fab::vectors::{ExchangedVectors, TrackerImbalance, add_words};

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

/// The ledger of all sets of vectors.
#[derive(Debug)]
pub(in crate::fab) struct LedgerMixing<D: Device> {
    reception: LedgerReception<D>,
    adapts_first: bool,
    sets: Vec<LedgerSet<D>>,
}

/// The ledgers of one set of vectors.
#[derive(Debug)]
struct LedgerSet<D: Device> {
    packed: Packed,
    history: BroadcastHistory<D>,
    /// Mass that waits on links.
    mass: D::Reals,
}

impl<D: Device> LedgerMixing<D> {
    pub(super) fn new(device: &D, ledger: &Ledger, adapts_first: bool, sets: &[Packed]) -> Result<Self> {
        let depth = ledger.depth();
        let set = |&packed: &Packed| -> Result<LedgerSet<D>> {
            let words = packed.words();
            let (v, t) = (device.reals(depth * words)?, device.reals(depth * words)?);
            let mass = device.reals((packed.agents - 1) * words)?;
            Ok(LedgerSet { packed, history: BroadcastHistory { depth, v, t }, mass })
        };
        Ok(LedgerMixing {
            reception: LedgerReception::new(device, ledger.audiences.len(), ledger.shares())?,
            adapts_first,
            sets: sets.iter().map(set).collect::<Result<_>>()?,
        })
    }

    /// Its parts of a set that outlive a round, with their words.
    pub(in crate::fab) fn parts(&self, set: usize) -> [(VectorPart, usize); 3] {
        let LedgerSet { packed, history, .. } = &self.sets[set];
        let sent = history.depth * packed.words();
        [
            (VectorPart::SentDecisions, sent),
            (VectorPart::SentTrackers, sent),
            (VectorPart::Mass, (packed.agents - 1) * packed.words()),
        ]
    }

    /// The buffer of a part of a set.
    pub(in crate::fab) fn buffer(&self, set: usize, part: VectorPart) -> Option<&D::Reals> {
        let LedgerSet { history, mass, .. } = &self.sets[set];
        match part {
            VectorPart::SentDecisions => Some(&history.v),
            VectorPart::SentTrackers => Some(&history.t),
            VectorPart::Mass => Some(mass),
            _ => None,
        }
    }

    /// The buffer of a part of a set, to be written.
    pub(in crate::fab) fn buffer_mut(&mut self, set: usize, part: VectorPart) -> Option<&mut D::Reals> {
        let LedgerSet { history, mass, .. } = &mut self.sets[set];
        match part {
            VectorPart::SentDecisions => Some(&mut history.v),
            VectorPart::SentTrackers => Some(&mut history.t),
            VectorPart::Mass => Some(mass),
            _ => None,
        }
    }

    pub(super) fn write(&mut self, device: &D, round: u32, exchange: &LedgerExchange) -> Result<()> {
        device.write_indices(&mut self.reception.round, &[round])?;
        device.write_indices(&mut self.reception.awake, &exchange.awake)?;
        device.write_indices(&mut self.reception.ages, &exchange.ages)
    }

    /// Records what agents broadcast at the start of a round, and pulls.
    pub(super) fn pull(&mut self, device: &D, set: usize, vectors: &mut ExchangedVectors<D>) -> Result<()> {
        let (reception, history) = (&self.reception, &mut self.sets[set].history);
        vectors.accumulate(device, Some(reception))?;
        let (packed, steps) = (vectors.packed, vectors.steps);
        if self.adapts_first {
            let (v, direction) = vectors.descent();
            let descent = Descent { steps, factors: None, awake: Some(&reception.awake) };
            device.descend(v, direction, packed, &descent)?;
        }
        device.record_broadcast(history, &vectors.v, &vectors.t, packed, reception)?;
        let (v, direction) = vectors.descent();
        let descent = Some((direction, steps)).filter(|_| !self.adapts_first);
        device.pull_received(v, packed, history, reception, descent)
    }

    pub(super) fn track(
        &mut self,
        device: &D,
        set: usize,
        t: &mut D::Reals,
        gradient: Gradient<'_, D>,
    ) -> Result<()> {
        let LedgerSet { packed, history, mass, .. } = &mut self.sets[set];
        device.track_by_ledger(t, mass, gradient, *packed, history, &self.reception)
    }

    /// Opens a new epoch: nothing waits.
    pub(in crate::fab) fn renew(&mut self, device: &D) -> Result<()> {
        for LedgerSet { packed, mass, .. } in &mut self.sets {
            let nothing = vec![D::Scalar::ZERO; packed.stride];
            for link in own_links(*packed, 0..packed.groups * packed.agents) {
                device.write(mass, link * packed.stride, &nothing)?;
            }
        }
        Ok(())
    }

    /// Adds what waits, as far as it is kept here.
    pub(in crate::fab) fn add_waiting(
        &self,
        device: &D,
        set: usize,
        whole: &mut TrackerImbalance,
    ) -> Result<()> {
        let LedgerSet { packed, mass, .. } = &self.sets[set];
        for (group, sums) in whole.sums.chunks_mut(packed.stride).enumerate() {
            for link in own_links(*packed, group * packed.agents..(group + 1) * packed.agents) {
                add_words(device, mass, link, 1.0, sums)?;
            }
        }
        Ok(())
    }

    /// How many vectors of each group a parcel has.
    pub(super) fn parcel_vectors(&self, exchange: &LedgerExchange, parcel: ParcelRoute) -> usize {
        match parcel.part {
            ParcelPart::Decisions => exchange.frames(parcel).len(),
            ParcelPart::Trackers => exchange.links(parcel.from, parcel.to).count(),
        }
    }

    pub(super) fn write_parcel(
        &self,
        device: &D,
        (round, exchange): (u32, &LedgerExchange),
        parcel: ParcelRoute,
        sets: &[ExchangedVectors<D>],
        sink: &mut dyn ParcelSink<D>,
    ) -> Result<()> {
        let both = || self.sets.iter().zip(sets);
        if parcel.part == ParcelPart::Trackers {
            for (receiver, sender, age) in exchange.links(parcel.from, parcel.to) {
                let share = receiver * exchange.awake.len() + sender;
                let share = device.read(&self.reception.shares, share, 1)?[0];
                for (set, vectors) in both() {
                    let frames = set.frames(sender, age, round, exchange);
                    for (frame, to) in frames.zip(set.packed.vectors_of(receiver)) {
                        let taken = set.taken(device, vectors, frame, to, share)?;
                        sink.copy(device, &taken, 0, set.packed.stride)?;
                    }
                }
            }
            return Ok(());
        }
        for (sender, age) in exchange.frames(parcel) {
            for (set, vectors) in both() {
                for frame in set.frames(sender, age, round, exchange) {
                    self.write_decisions(device, set, vectors, frame, sink)?;
                }
            }
        }
        Ok(())
    }

    /// Puts the decisions of a frame into `sink`. This round is recorded when it begins; until then it stands in the state itself.
    fn write_decisions(
        &self,
        device: &D,
        set: &LedgerSet<D>,
        vectors: &ExchangedVectors<D>,
        frame: SentFrame,
        sink: &mut dyn ParcelSink<D>,
    ) -> Result<()> {
        let stride = set.packed.stride;
        match frame.age {
            0 if self.adapts_first => {
                sink.copy(device, &vectors.adapted(device, frame.vector, 1.0)?, 0, stride)
            }
            0 => sink.copy(device, &vectors.v, frame.vector * stride, stride),
            age => sink.copy(device, &set.history.v, set.place(frame, age), stride),
        }
    }

    pub(super) fn take_parcel(
        &mut self,
        device: &D,
        (round, exchange): (u32, &LedgerExchange),
        parcel: ParcelRoute,
        source: &mut dyn ParcelSource<D>,
    ) -> Result<()> {
        if parcel.part == ParcelPart::Trackers {
            for (receiver, sender, _) in exchange.links(parcel.from, parcel.to) {
                for LedgerSet { packed, mass, .. } in &mut self.sets {
                    for to in packed.vectors_of(receiver) {
                        let link = link_number(packed.agents, to, sender);
                        source.copy(device, mass, link * packed.stride, packed.stride)?;
                    }
                }
            }
            return Ok(());
        }
        for (sender, age) in exchange.frames(parcel) {
            for set in &mut self.sets {
                let stride = set.packed.stride;
                for frame in set.frames(sender, age, round, exchange) {
                    let at = set.place(frame, age);
                    source.copy(device, &mut set.history.v, at, stride)?;
                }
            }
        }
        Ok(())
    }
}

/// One vector of a frame.
#[derive(Clone, Copy, Debug)]
struct SentFrame {
    /// The number of the vector of its sender.
    vector: usize,
    sender: usize,
    /// Rounds since it was sent.
    age: usize,
    /// The present round.
    round: u32,
    /// Whether the sender is up in the present round.
    is_up: bool,
}

impl<D: Device> LedgerSet<D> {
    /// The vectors of a frame, one of each group.
    fn frames(
        &self,
        sender: usize,
        age: usize,
        round: u32,
        exchange: &LedgerExchange,
    ) -> impl Iterator<Item = SentFrame> + use<D> {
        let is_up = exchange.is_awake(sender);
        self.packed.vectors_of(sender).map(move |vector| SentFrame { vector, sender, age, round, is_up })
    }

    /// Index of what the sender of a frame broadcast `age` rounds ago.
    fn place(&self, frame: SentFrame, age: usize) -> usize {
        self.history.place(self.packed, frame.round, age, frame.vector)
    }

    /// The mass that the receiver with the vector `to` takes, in a buffer of its own: as in `device/cpu/ledger.rs`.
    fn taken(
        &self,
        device: &D,
        vectors: &ExchangedVectors<D>,
        frame: SentFrame,
        to: usize,
        share: D::Scalar,
    ) -> Result<D::Reals> {
        let Packed { agents, stride, .. } = self.packed;
        // This round is recorded when it begins; until then it stands in the state itself.
        let add = |age: usize, sum: &mut D::Reals| match age {
            0 if !frame.is_up => device.add_scaled(&device.reals(stride)?, 0, stride, share, sum),
            0 => device.add_scaled(&vectors.t, frame.vector * stride, stride, share, sum),
            age => device.add_scaled(&self.history.t, self.place(frame, age), stride, share, sum),
        };
        let at = link_number(agents, to, frame.sender) * stride;
        let mut taken = device.reals(stride)?;
        device.copy_words(&self.mass, at, stride, &mut taken)?;
        add(0, &mut taken)?;
        if frame.age > 0 {
            let mut recent = device.reals(stride)?;
            (0..frame.age).try_for_each(|since| add(since, &mut recent))?;
            device.add_scaled(&recent, 0, stride, -D::Scalar::ONE, &mut taken)?;
        }
        Ok(taken)
    }
}

impl LedgerExchange {
    /// Senders of one host and the ages of their frames that agents of the other hear.
    fn frames(&self, parcel: ParcelRoute) -> BTreeSet<(usize, usize)> {
        self.links(parcel.from, parcel.to).map(|(_, sender, age)| (sender, age)).collect()
    }
}

/// The number of the link from `sender` to the receiver that has this vector: an agent has none to itself.
fn link_number(agents: usize, vector: usize, sender: usize) -> usize {
    vector * (agents - 1) + sender - usize::from(sender > vector % agents)
}

/// Numbers of the links of those receivers whose waiting mass is kept here: those of the senders that are computed here.
fn own_links(packed: Packed, receivers: Range<usize>) -> impl Iterator<Item = usize> {
    let Packed { agents, own, .. } = packed;
    receivers.flat_map(move |vector| {
        let others = own.range().filter(move |sender| *sender != vector % agents);
        others.map(move |sender| link_number(agents, vector, sender))
    })
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
