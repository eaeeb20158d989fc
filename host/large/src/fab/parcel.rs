//! Parcels: what one host sends another in a round.
//!
//! Links of a round follow from the scenario, so both ends know what is in a parcel, and it has no more than its words: for every
//! agent of the sending host that some agent of the other one hears,
//!
//! ```text
//! push weights   v_j and t_j
//! ledger         v_j as it was when the frame was sent, and for every link what its receiver takes, w_ij + s_ij t_j − recent
//! books          v_j as it was when the frame was sent, and σ_j at that time, as two words each
//! ```
//!
//! There are [books](super::books) where a host may be lost while the others go on.
//!
//! What waits on a link between hosts is kept by the sender's, and computed with the same operations in the same order as in one
//! process.

use std::collections::BTreeSet;

use fabswarm_shared::scalar::Scalar as _;

use super::books::{SUM_WORDS, to_sums, to_words};
use super::exchanged::{DeviceLinks, Exchange, ExchangedVectors, LedgerState, link_number};
use super::{Fab, PushSumExchange, Upper};
use crate::device::{Block, Device, Packed, Reception, Result};

/// One agent's or link's vectors in a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParcelItem {
    /// v of `age` rounds ago.
    Decisions { sender: usize, age: usize },
    /// t.
    Tracker { sender: usize },
    /// What the receiver takes of what waits, from a frame that was sent `age` rounds ago.
    Mass { receiver: usize, sender: usize, age: usize },
    /// σ of `age` rounds ago.
    Sums { sender: usize, age: usize },
}

/// What the agents of `to` need of those of `from`.
fn items(exchange: &Exchange<'_>, from: Block, to: Block, has_books: bool) -> Vec<ParcelItem> {
    match *exchange {
        Exchange::Weights { pull: rows, push }
        | Exchange::PushSum(PushSumExchange { ratio: rows, push, .. }) => {
            let rows = to.range().flat_map(|receiver| rows.row(receiver).chain(push.row(receiver)));
            let senders: BTreeSet<usize> =
                rows.map(|(sender, _)| sender).filter(|&sender| from.has(sender)).collect();
            let both = |sender| [ParcelItem::Decisions { sender, age: 0 }, ParcelItem::Tracker { sender }];
            senders.into_iter().flat_map(both).collect()
        }
        Exchange::Ledger { ages, awake } => {
            let links = to.range().flat_map(|receiver| from.range().map(move |sender| (receiver, sender)));
            let age_of = |(receiver, sender)| ages[receiver * awake.len() + sender] as usize;
            let heard: Vec<_> = links.filter(|&link| age_of(link) > 0).collect();
            let frames: BTreeSet<_> = heard.iter().map(|&link| (link.1, age_of(link) - 1)).collect();
            if has_books {
                let both =
                    |(sender, age)| [ParcelItem::Decisions { sender, age }, ParcelItem::Sums { sender, age }];
                return frames.into_iter().flat_map(both).collect();
            }
            let decisions = frames.into_iter().map(|(sender, age)| ParcelItem::Decisions { sender, age });
            let taken = heard.iter().map(|&link| {
                let (receiver, sender) = link;
                ParcelItem::Mass { receiver, sender, age: age_of(link) - 1 }
            });
            decisions.chain(taken).collect()
        }
    }
}

impl<D: Device> Fab<D> {
    /// Words of the parcel that the host of `from` has for the host of `to` in a round with this `exchange`.
    pub fn parcel_words(&self, exchange: &Exchange<'_>, from: Block, to: Block) -> usize {
        let items = items(exchange, from, to, self.has_books());
        let words =
            |item: &ParcelItem| self.vectors().map(|vectors| vectors.item_words(*item)).sum::<usize>();
        items.iter().map(words).sum()
    }

    /// The parcel for the host of `to`, at the start of the round with this `exchange`.
    ///
    /// # Errors
    /// When the device fails.
    pub fn parcel(&self, exchange: &Exchange<'_>, to: Block) -> Result<Vec<D::Scalar>> {
        let mut words = Vec::with_capacity(self.parcel_words(exchange, self.own, to));
        for item in items(exchange, self.own, to, self.has_books()) {
            for vectors in self.vectors() {
                vectors.read_item(&self.device, &self.links, exchange, self.round + 1, item, &mut words)?;
            }
        }
        Ok(words)
    }

    /// Takes the parcel of the host of `from`, before the round with this `exchange`.
    ///
    /// # Errors
    /// When the device fails.
    ///
    /// # Panics
    /// When it does not have [`Fab::parcel_words`] words.
    pub fn take_parcel(
        &mut self,
        exchange: &Exchange<'_>,
        from: Block,
        mut words: &[D::Scalar],
    ) -> Result<()> {
        let (round, own) = (self.round + 1, self.own);
        for item in items(exchange, from, own, self.has_books()) {
            words = self.lower.write_item(&self.device, exchange, round, item, words)?;
            if let Upper::Strength(x) = &mut self.upper {
                words = x.write_item(&self.device, exchange, round, item, words)?;
            }
        }
        assert!(words.is_empty(), "{} words too many in a parcel", words.len());
        Ok(())
    }

    /// Everything that is exchanged.
    fn vectors(&self) -> impl Iterator<Item = &ExchangedVectors<D>> {
        let x = match &self.upper {
            Upper::Strength(x) => Some(&**x),
            _ => None,
        };
        std::iter::once(&self.lower).chain(x)
    }
}

impl<D: Device> ExchangedVectors<D> {
    fn item_words(&self, item: ParcelItem) -> usize {
        let words = self.packed.groups * self.packed.stride;
        if let ParcelItem::Sums { .. } = item { SUM_WORDS * words } else { words }
    }

    fn read_item(
        &self,
        device: &D,
        links: &DeviceLinks<D>,
        exchange: &Exchange<'_>,
        round: u32,
        item: ParcelItem,
        words: &mut Vec<D::Scalar>,
    ) -> Result<()> {
        let Packed { groups, agents, stride, .. } = self.packed;
        for group in 0..groups {
            let now = |sender: usize| (group * agents + sender) * stride;
            words.extend(match (item, &self.ledger) {
                (ParcelItem::Sums { sender, age }, Some(ledger)) => {
                    to_words(&self.sum(device, exchange, ledger, round, group, sender, age)?)
                }
                (ParcelItem::Decisions { sender, age: 0 }, _) => device.read(&self.v, now(sender), stride)?,
                (ParcelItem::Decisions { sender, age }, Some(LedgerState { history, .. })) => {
                    let at = history.place(self.packed, round, age, group, sender);
                    device.read(&history.v, at, stride)?
                }
                (ParcelItem::Tracker { sender }, _) => device.read(&self.t, now(sender), stride)?,
                (ParcelItem::Mass { receiver, sender, age }, Some(ledger)) => {
                    let (Exchange::Ledger { awake, .. }, DeviceLinks::Ledger(reception)) = (exchange, links)
                    else {
                        unreachable!("mass waits only where there is a ledger")
                    };
                    let link = ParcelLink { group, receiver, sender, is_up: awake[sender] == 1 };
                    self.taken(device, reception, ledger, round, link, age)?
                }
                _ => unreachable!("only a ledger has a history"),
            });
        }
        Ok(())
    }

    /// σ of a sender when it sent the frame of `age` rounds ago.
    #[expect(clippy::too_many_arguments, reason = "where in the state, and when")]
    fn sum(
        &self,
        device: &D,
        exchange: &Exchange<'_>,
        ledger: &LedgerState<D>,
        round: u32,
        group: usize,
        sender: usize,
        age: usize,
    ) -> Result<Vec<f64>> {
        let (Some(books), Exchange::Ledger { awake, .. }) = (&self.books, exchange) else {
            unreachable!("sums are kept only where there are books")
        };
        let Packed { agents, stride, .. } = self.packed;
        let vector = group * agents + sender;
        // This round's share is set aside when it begins.
        let now = match age {
            0 if awake[sender] == 1 => Some(device.read(&self.t, vector * stride, stride)?),
            _ => None,
        };
        let tracker_at = |age: usize| {
            let at = ledger.history.place(self.packed, round, age, group, sender);
            device.read(&ledger.history.t, at, stride)
        };
        let later = (1..age).map(tracker_at).collect::<Result<Vec<_>>>()?;
        Ok(books.sum(vector, now.as_deref(), &later))
    }

    /// What the receiver of a link takes: as in `device/cpu/ledger.rs`.
    fn taken(
        &self,
        device: &D,
        reception: &Reception<D>,
        ledger: &LedgerState<D>,
        round: u32,
        ParcelLink { group, receiver, sender, is_up }: ParcelLink,
        age: usize,
    ) -> Result<Vec<D::Scalar>> {
        let Packed { agents, stride, .. } = self.packed;
        let share = device.read(&reception.shares, receiver * agents + sender, 1)?[0];
        // This round is recorded when it begins; until then it stands in the state itself.
        let tracker_at = |age: usize| match age {
            0 if !is_up => Ok(vec![D::Scalar::ZERO; stride]),
            0 => device.read(&self.t, (group * agents + sender) * stride, stride),
            age => device.read(
                &ledger.history.t,
                ledger.history.place(self.packed, round, age, group, sender),
                stride,
            ),
        };
        let at = link_number(agents, group * agents + receiver, sender) * stride;
        let mut taken = device.read(&ledger.mass, at, stride)?;
        taken.iter_mut().zip(tracker_at(0)?).for_each(|(mass, now)| *mass += share * now);
        if age > 0 {
            let mut recent = vec![D::Scalar::ZERO; stride];
            for since in 0..age {
                let trackers = tracker_at(since)?;
                recent.iter_mut().zip(trackers).for_each(|(recent, t)| *recent += share * t);
            }
            taken.iter_mut().zip(recent).for_each(|(taken, recent)| *taken -= recent);
        }
        Ok(taken)
    }

    /// Writes an item to where the round looks for it, and returns the words behind it.
    fn write_item<'w>(
        &mut self,
        device: &D,
        exchange: &Exchange<'_>,
        round: u32,
        item: ParcelItem,
        words: &'w [D::Scalar],
    ) -> Result<&'w [D::Scalar]> {
        let Packed { groups, agents, stride, own: here } = self.packed;
        let (own, rest) = words.split_at(self.item_words(item));
        for (group, words) in (0..groups).zip(own.chunks(own.len() / groups)) {
            match (item, &mut self.ledger) {
                (ParcelItem::Sums { sender, age }, Some(LedgerState { mass, .. })) => {
                    let (Some(books), Exchange::Ledger { ages, .. }) = (&mut self.books, exchange) else {
                        unreachable!("sums are kept only where there are books")
                    };
                    let sums = to_sums(words);
                    for receiver in
                        here.range().filter(|receiver| ages[receiver * agents + sender] as usize == age + 1)
                    {
                        let link = link_number(agents, group * agents + receiver, sender);
                        device.write(mass, link * stride, &books.take(link, &sums))?;
                    }
                }
                (ParcelItem::Decisions { sender, .. }, None) => {
                    device.write(&mut self.v, (group * agents + sender) * stride, words)?;
                }
                (ParcelItem::Decisions { sender, age }, Some(LedgerState { history, .. })) => {
                    let at = history.place(self.packed, round, age, group, sender);
                    device.write(&mut history.v, at, words)?;
                }
                (ParcelItem::Tracker { sender }, _) => {
                    device.write(&mut self.t, (group * agents + sender) * stride, words)?;
                }
                (ParcelItem::Mass { receiver, sender, .. }, Some(LedgerState { mass, .. })) => {
                    let link = link_number(agents, group * agents + receiver, sender);
                    device.write(mass, link * stride, words)?;
                }
                (ParcelItem::Mass { .. } | ParcelItem::Sums { .. }, None) => {
                    unreachable!("mass waits only where there is a ledger")
                }
            }
        }
        Ok(rest)
    }
}

/// A link between hosts, in one group of vectors.
#[derive(Clone, Copy, Debug)]
struct ParcelLink {
    group: usize,
    receiver: usize,
    sender: usize,
    /// Whether the sender is up in this round.
    is_up: bool,
}
