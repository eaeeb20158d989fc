//! Mixing by a broadcast ledger: what waits on links, and what was sent in the last rounds.

use std::collections::BTreeSet;
use std::ops::Range;

use fabswarm_shared::scalar::Scalar as _;

use crate::device::{BroadcastHistory, Descent, Device, Gradient, LedgerReception, Packed, Result};
use crate::fab::exchange::LedgerExchange;
use crate::fab::parcel::{ParcelPart, ParcelRoute, ParcelSink, ParcelSource};
use crate::fab::state_part::VectorPart;
use crate::fab::vectors::ExchangedVectors;

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

/// Mixing by the ledger: the mass that arrives in a round, and how agents descend.
#[derive(Debug)]
pub(in crate::fab) struct LedgerMixing<D: Device> {
    reception: LedgerReception<D>,
    adapts_first: bool,
}

/// The ledger of one set of vectors.
#[derive(Debug)]
pub(in crate::fab) struct LedgerVectors<D: Device> {
    pub(in crate::fab) history: BroadcastHistory<D>,
    /// Mass that waits on links.
    pub(in crate::fab) mass: D::Reals,
}

impl<D: Device> LedgerVectors<D> {
    pub(in crate::fab) fn new(device: &D, ledger: &Ledger, packed: Packed) -> Result<Self> {
        let history = BroadcastHistory::new(device, packed, ledger.depth())?;
        Ok(LedgerVectors { history, mass: device.reals((packed.agents - 1) * packed.words())? })
    }

    /// Its parts that outlive a round, with their words.
    pub(in crate::fab) fn parts(&self) -> [(VectorPart, usize); 3] {
        let BroadcastHistory { packed, depth, .. } = &self.history;
        let sent = depth * packed.words();
        [
            (VectorPart::SentDecisions, sent),
            (VectorPart::SentTrackers, sent),
            (VectorPart::Mass, (packed.agents - 1) * packed.words()),
        ]
    }

    /// Opens a new epoch: nothing waits.
    pub(in crate::fab) fn renew(&mut self, device: &D) -> Result<()> {
        let packed = self.history.packed;
        let nothing = vec![D::Scalar::ZERO; packed.stride];
        own_links(packed, 0..packed.groups * packed.agents)
            .try_for_each(|link| device.write(&mut self.mass, link * packed.stride, &nothing))
    }

    /// Adds what waits, as far as it is kept here, to sums of all groups.
    pub(in crate::fab) fn add_waiting(&self, device: &D, sums: &mut [f64]) -> Result<()> {
        let Packed { agents, stride, .. } = self.history.packed;
        for (group, sums) in sums.chunks_mut(stride).enumerate() {
            for link in own_links(self.history.packed, group * agents..(group + 1) * agents) {
                let words = device.read(&self.mass, link * stride, stride)?;
                sums.iter_mut().zip(words).for_each(|(sum, word)| *sum += word.to_f64());
            }
        }
        Ok(())
    }
}

/// The ledger of a set of vectors of a swarm that has one.
fn of_set<T>(ledger: Option<T>) -> T {
    ledger.expect("with a ledger every set of vectors has one")
}

impl<D: Device> LedgerMixing<D> {
    pub(super) fn new(device: &D, ledger: &Ledger, adapts_first: bool) -> Result<Self> {
        let reception = LedgerReception::new(device, ledger.audiences.len(), ledger.shares())?;
        Ok(LedgerMixing { reception, adapts_first })
    }

    pub(super) fn write(&mut self, device: &D, exchange: &LedgerExchange) -> Result<()> {
        device.write_indices(&mut self.reception.round, &[exchange.round])?;
        device.write_indices(&mut self.reception.awake, &exchange.awake)?;
        device.write_indices(&mut self.reception.ages, &exchange.ages)
    }

    /// Records what agents broadcast at the start of a round, and pulls.
    pub(super) fn pull(&self, device: &D, vectors: &mut ExchangedVectors<D>) -> Result<()> {
        let reception = &self.reception;
        vectors.accumulate(device, Some(reception))?;
        let ExchangedVectors { packed, v, t, momentum, ledger, steps, .. } = vectors;
        let history = &mut of_set(ledger.as_mut()).history;
        let direction = momentum.as_ref().map_or(&*t, |momentum| &momentum.accumulator);
        if self.adapts_first {
            let descent = Descent { steps: *steps, factors: None, awake: Some(&reception.awake) };
            device.descend(v, direction, *packed, &descent)?;
        }
        let descent = Some((direction, *steps)).filter(|_| !self.adapts_first);
        device.pull_by_ledger(v, t, history, reception, descent)
    }

    pub(super) fn track(
        &self,
        device: &D,
        t: &mut D::Reals,
        gradient: Gradient<'_, D>,
        ledger: Option<&mut LedgerVectors<D>>,
    ) -> Result<()> {
        let LedgerVectors { history, mass } = of_set(ledger);
        device.track_by_ledger(t, mass, gradient, history, &self.reception)
    }

    pub(in crate::fab) fn write_parcel(
        &self,
        device: &D,
        exchange: &LedgerExchange,
        parcel: ParcelRoute,
        sets: &[ExchangedVectors<D>],
        sink: &mut ParcelSink<'_, D>,
    ) -> Result<()> {
        if parcel.part == ParcelPart::Trackers {
            for (receiver, sender, age) in exchange.links(parcel.from, parcel.to) {
                let share = receiver * exchange.awake.len() + sender;
                let share = device.read(&self.reception.shares, share, 1)?[0];
                for set in sets {
                    let froms = set.packed.vectors_of(sender);
                    for (from, to) in froms.zip(set.packed.vectors_of(receiver)) {
                        let taken = taken(device, set, exchange, [sender, age, from, to], share)?;
                        sink(&taken, 0, set.packed.stride)?;
                    }
                }
            }
            return Ok(());
        }
        for (sender, age) in exchange.frames(parcel) {
            for set in sets {
                let (stride, history) = (set.packed.stride, &of_set(set.ledger.as_ref()).history);
                for from in set.packed.vectors_of(sender) {
                    // This round is recorded when it begins; until then it stands in the state itself.
                    match age {
                        0 if self.adapts_first => sink(&set.adapted(device, from, 1.0)?, 0, stride)?,
                        0 => sink(&set.v, from * stride, stride)?,
                        age => sink(&history.v, history.place(exchange.round, age, from), stride)?,
                    }
                }
            }
        }
        Ok(())
    }
}

pub(in crate::fab) fn take_parcel<D: Device>(
    device: &D,
    exchange: &LedgerExchange,
    parcel: ParcelRoute,
    sets: &mut [ExchangedVectors<D>],
    source: &mut ParcelSource<'_, D>,
) -> Result<()> {
    if parcel.part == ParcelPart::Trackers {
        for (receiver, sender, _) in exchange.links(parcel.from, parcel.to) {
            for set in &mut *sets {
                let (packed, mass) = (set.packed, &mut of_set(set.ledger.as_mut()).mass);
                for to in packed.vectors_of(receiver) {
                    let link = link_number(packed.agents, to, sender);
                    source(device, mass, link * packed.stride, packed.stride)?;
                }
            }
        }
        return Ok(());
    }
    for (sender, age) in exchange.frames(parcel) {
        for set in &mut *sets {
            let history = &mut of_set(set.ledger.as_mut()).history;
            for from in set.packed.vectors_of(sender) {
                let at = history.place(exchange.round, age, from);
                source(device, &mut history.v, at, set.packed.stride)?;
            }
        }
    }
    Ok(())
}

/// The mass that the receiver with the vector `to` takes of a frame of the vector `from`, `age` rounds after it was sent, in a
/// buffer of its own: as in `device/cpu/ledger.rs`.
fn taken<D: Device>(
    device: &D,
    set: &ExchangedVectors<D>,
    exchange: &LedgerExchange,
    [sender, age, from, to]: [usize; 4],
    share: D::Scalar,
) -> Result<D::Reals> {
    let Packed { agents, stride, .. } = set.packed;
    let LedgerVectors { history, mass } = of_set(set.ledger.as_ref());
    // This round is recorded when it begins; until then it stands in the state itself.
    let add = |age: usize, sum: &mut D::Reals| match age {
        0 if !exchange.is_awake(sender) => device.add_scaled(&device.reals(stride)?, 0, stride, share, sum),
        0 => device.add_scaled(&set.t, from * stride, stride, share, sum),
        age => device.add_scaled(&history.t, history.place(exchange.round, age, from), stride, share, sum),
    };
    let mut taken = device.reals(stride)?;
    device.copy_words(mass, link_number(agents, to, sender) * stride, stride, &mut taken)?;
    add(0, &mut taken)?;
    if age > 0 {
        let mut recent = device.reals(stride)?;
        (0..age).try_for_each(|since| add(since, &mut recent))?;
        device.add_scaled(&recent, 0, stride, -D::Scalar::ONE, &mut taken)?;
    }
    Ok(taken)
}

impl LedgerExchange {
    /// Senders of one host and the ages of their frames that agents of the other hear.
    fn frames(&self, parcel: ParcelRoute) -> BTreeSet<(usize, usize)> {
        self.links(parcel.from, parcel.to).map(|(_, sender, age)| (sender, age)).collect()
    }

    /// How many vectors of each group a parcel has.
    pub(in crate::fab) fn parcel_vectors(&self, parcel: ParcelRoute) -> usize {
        match parcel.part {
            ParcelPart::Decisions => self.frames(parcel).len(),
            ParcelPart::Trackers => self.links(parcel.from, parcel.to).count(),
        }
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
