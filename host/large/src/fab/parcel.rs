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
use serde::{Deserialize, Serialize};

use super::books::{SUM_WORDS, to_sums, to_words};
use super::exchanged::{DeviceLinks, Exchange, ExchangedVectors, LedgerState, link_number};
use super::parcel_words::{ParcelSink, ParcelSource};
use super::{Fab, PushSumExchange, Upper};
use crate::device::{Block, Device, Packed, Reception, Result};

/// Which half of a round a parcel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ParcelPart {
    /// Decisions, which the round begins with.
    Decisions,
    /// Trackers, or what is taken of them, which are needed when the gradient is there.
    Trackers,
}

impl ParcelPart {
    /// In the order in which a round needs them.
    pub const ALL: [Self; 2] = [ParcelPart::Decisions, ParcelPart::Trackers];
}

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
    Sigma { sender: usize, age: usize },
}

impl ParcelItem {
    fn part(self) -> ParcelPart {
        match self {
            ParcelItem::Decisions { .. } => ParcelPart::Decisions,
            ParcelItem::Tracker { .. } | ParcelItem::Mass { .. } | ParcelItem::Sigma { .. } => {
                ParcelPart::Trackers
            }
        }
    }
}

/// What the agents of `to` need of those of `from` for one part of a round.
fn items(
    exchange: &Exchange<'_>,
    from: Block,
    to: Block,
    part: ParcelPart,
    has_books: bool,
) -> Vec<ParcelItem> {
    let mut items = all_items(exchange, from, to, has_books);
    items.retain(|item| item.part() == part);
    items
}

/// What the agents of `to` need of those of `from`.
fn all_items(exchange: &Exchange<'_>, from: Block, to: Block, has_books: bool) -> Vec<ParcelItem> {
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
            // Who receives what, and how old it is.
            let heard_by = |receiver: usize| {
                let row = &ages[receiver * awake.len()..];
                let heard = from.range().filter(|&sender| row[sender] > 0);
                heard.map(move |sender| (receiver, sender, row[sender] as usize - 1))
            };
            let links = to.range().flat_map(heard_by);
            let frames: BTreeSet<(usize, usize)> =
                links.clone().map(|(_, sender, age)| (sender, age)).collect();
            let decisions = |(sender, age)| ParcelItem::Decisions { sender, age };
            if has_books {
                let both = |(sender, age)| [decisions((sender, age)), ParcelItem::Sigma { sender, age }];
                return frames.into_iter().flat_map(both).collect();
            }
            let masses = links.map(|(receiver, sender, age)| ParcelItem::Mass { receiver, sender, age });
            frames.into_iter().map(decisions).chain(masses).collect()
        }
    }
}

impl<D: Device> Fab<D> {
    /// Words of the parcel that the host of `from` has for the host of `to` in a round with this `exchange`.
    pub fn parcel_words(&self, exchange: &Exchange<'_>, from: Block, to: Block, part: ParcelPart) -> usize {
        let items = items(exchange, from, to, part, self.has_books());
        let words =
            |item: &ParcelItem| self.vectors().map(|vectors| vectors.item_words(*item)).sum::<usize>();
        items.iter().map(words).sum()
    }

    /// Puts the parcel for the host of `to` into `sink`, at the start of the round with this `exchange`.
    pub(crate) fn write_parcel(
        &self,
        exchange: &Exchange<'_>,
        to: Block,
        part: ParcelPart,
        sink: &mut dyn ParcelSink<D>,
    ) -> Result<()> {
        for item in items(exchange, self.own, to, part, self.has_books()) {
            for vectors in self.vectors() {
                let round = self.rounds() + 1;
                vectors.read_item(&self.device, &self.state.links, exchange, round, item, sink)?;
            }
        }
        Ok(())
    }

    /// Takes a parcel of the host of `from` for the round `round` with this `exchange`: decisions before [`Fab::descend`], trackers
    /// before [`Fab::follow`].
    ///
    /// # Panics
    /// When it does not have [`Fab::parcel_words`] words.
    pub(crate) fn take_parcel(
        &mut self,
        exchange: &Exchange<'_>,
        round: u32,
        from: Block,
        part: ParcelPart,
        source: &mut dyn ParcelSource<D>,
    ) -> Result<()> {
        let own = self.own;
        for item in items(exchange, from, own, part, self.has_books()) {
            self.state.lower.write_item(&self.device, exchange, round, item, source)?;
            if let Upper::Strength(x) = &mut self.state.upper {
                x.write_item(&self.device, exchange, round, item, source)?;
            }
        }
        assert_eq!(source.left(), 0, "words too many in a parcel");
        Ok(())
    }

    /// Everything that is exchanged.
    fn vectors(&self) -> impl Iterator<Item = &ExchangedVectors<D>> {
        let x = match &self.state.upper {
            Upper::Strength(x) => Some(&**x),
            _ => None,
        };
        std::iter::once(&self.state.lower).chain(x)
    }
}

impl<D: Device> ExchangedVectors<D> {
    fn item_words(&self, item: ParcelItem) -> usize {
        let words = self.packed.groups * self.packed.stride;
        if let ParcelItem::Sigma { .. } = item { SUM_WORDS * words } else { words }
    }

    fn read_item(
        &self,
        device: &D,
        links: &DeviceLinks<D>,
        exchange: &Exchange<'_>,
        round: u32,
        item: ParcelItem,
        sink: &mut dyn ParcelSink<D>,
    ) -> Result<()> {
        let Packed { groups, agents, stride, .. } = self.packed;
        for group in 0..groups {
            let now = |sender: usize| (group * agents + sender) * stride;
            match (item, &self.ledger) {
                (ParcelItem::Sigma { sender, age }, Some(ledger)) => {
                    let sum = self.sum(device, exchange, ledger, round, group, sender, age)?;
                    sink.write(device, &to_words::<D::Scalar>(&sum))?;
                }
                (ParcelItem::Decisions { sender, age: 0 }, _) => {
                    sink.copy(device, &self.v, now(sender), stride)?;
                }
                (ParcelItem::Decisions { sender, age }, Some(LedgerState { history, .. })) => {
                    let at = history.place(self.packed, round, age, group, sender);
                    sink.copy(device, &history.v, at, stride)?;
                }
                (ParcelItem::Tracker { sender }, _) => sink.copy(device, &self.t, now(sender), stride)?,
                (ParcelItem::Mass { receiver, sender, age }, Some(ledger)) => {
                    let (Exchange::Ledger { awake, .. }, DeviceLinks::Ledger(reception)) = (exchange, links)
                    else {
                        unreachable!("mass waits only where there is a ledger")
                    };
                    let link = ParcelLink { group, receiver, sender, is_up: awake[sender] == 1 };
                    let taken = self.taken(device, reception, ledger, round, link, age)?;
                    sink.copy(device, &taken, 0, stride)?;
                }
                _ => unreachable!("only a ledger has a history"),
            }
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

    /// What the receiver of a link takes, in a buffer of its own: as in `device/cpu/ledger.rs`.
    fn taken(
        &self,
        device: &D,
        reception: &Reception<D>,
        ledger: &LedgerState<D>,
        round: u32,
        ParcelLink { group, receiver, sender, is_up }: ParcelLink,
        age: usize,
    ) -> Result<D::Reals> {
        let Packed { agents, stride, .. } = self.packed;
        let share = device.read(&reception.shares, receiver * agents + sender, 1)?[0];
        // This round is recorded when it begins; until then it stands in the state itself.
        let add = |age: usize, scale: D::Scalar, to: &mut D::Reals| match age {
            0 if !is_up => device.add_scaled(&device.reals(stride)?, 0, stride, scale, to),
            0 => device.add_scaled(&self.t, (group * agents + sender) * stride, stride, scale, to),
            age => {
                let at = ledger.history.place(self.packed, round, age, group, sender);
                device.add_scaled(&ledger.history.t, at, stride, scale, to)
            }
        };
        let at = link_number(agents, group * agents + receiver, sender) * stride;
        let mut taken = device.reals(stride)?;
        device.copy_words(&ledger.mass, at, stride, &mut taken)?;
        add(0, share, &mut taken)?;
        if age > 0 {
            let mut recent = device.reals(stride)?;
            (0..age).try_for_each(|since| add(since, share, &mut recent))?;
            device.add_scaled(&recent, 0, stride, -D::Scalar::ONE, &mut taken)?;
        }
        Ok(taken)
    }

    /// Writes the next item of `source` to where the round looks for it.
    fn write_item(
        &mut self,
        device: &D,
        exchange: &Exchange<'_>,
        round: u32,
        item: ParcelItem,
        source: &mut dyn ParcelSource<D>,
    ) -> Result<()> {
        let Packed { groups, agents, stride, own: here } = self.packed;
        for group in 0..groups {
            match (item, &mut self.ledger) {
                (ParcelItem::Sigma { sender, age }, Some(LedgerState { mass, .. })) => {
                    let (Some(books), Exchange::Ledger { ages, .. }) = (&mut self.books, exchange) else {
                        unreachable!("sums are kept only where there are books")
                    };
                    let sums = to_sums(&source.read(device, SUM_WORDS * stride)?);
                    for receiver in
                        here.range().filter(|receiver| ages[receiver * agents + sender] as usize == age + 1)
                    {
                        let link = link_number(agents, group * agents + receiver, sender);
                        device.write(mass, link * stride, &books.take(link, &sums))?;
                    }
                }
                (ParcelItem::Decisions { sender, .. }, None) => {
                    source.copy(device, &mut self.v, (group * agents + sender) * stride, stride)?;
                }
                (ParcelItem::Decisions { sender, age }, Some(LedgerState { history, .. })) => {
                    let at = history.place(self.packed, round, age, group, sender);
                    source.copy(device, &mut history.v, at, stride)?;
                }
                (ParcelItem::Tracker { sender }, _) => {
                    source.copy(device, &mut self.t, (group * agents + sender) * stride, stride)?;
                }
                (ParcelItem::Mass { receiver, sender, .. }, Some(LedgerState { mass, .. })) => {
                    let link = link_number(agents, group * agents + receiver, sender);
                    source.copy(device, mass, link * stride, stride)?;
                }
                (ParcelItem::Mass { .. } | ParcelItem::Sigma { .. }, None) => {
                    unreachable!("mass waits only where there is a ledger")
                }
            }
        }
        Ok(())
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
