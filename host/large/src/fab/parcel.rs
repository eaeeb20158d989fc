//! Parcels: what one host sends another in a round.
//!
//! Links of a round follow from the scenario, so both ends know what is in a parcel, and it has no more than its words: for every
//! agent of the sending host that some agent of the other one hears,
//!
//! ```text
//! push weights   v_j and t_j
//! ledger         v_j as it was when the frame was sent, and for every link what its receiver takes, w_ij + s_ij t_j − recent
//! sums           for every agent that hears any, what it would add up of these itself: see `fab/sums.rs`
//! books          v_j as it was when the frame was sent, and σ_j at that time, as two words each
//! ```
//!
//! There are [books](super::books) where a host may be lost while the others go on, and [sums](super::sums) where the scenario asks
//! for them.
//!
//! What waits on a link between hosts is kept by the sender's, and computed with the same operations in the same order as in one
//! process.

use std::collections::BTreeSet;

use fabswarm_shared::scalar::Scalar as _;
use serde::{Deserialize, Serialize};

use super::books::{SUM_WORDS, to_sums, to_words};
use super::exchanged::{DeviceLinks, Exchange, ExchangedVectors, LedgerState, link_number};
use super::parcel_words::{ParcelSink, ParcelSource};
use super::sums::{BlockLinks, RoundRows};
use super::{Fab, PushSumExchange, Upper};
use crate::device::{Block, Device, Packed, Reception, Result};
use crate::mixing::add_weighted;

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
    /// The sum of all decisions that the receiver hears.
    DecisionSum { receiver: usize },
    /// The sum of all trackers that the receiver hears.
    TrackerSum { receiver: usize },
    /// The sum of all that the receiver takes.
    MassSum { receiver: usize },
}

impl ParcelItem {
    fn part(self) -> ParcelPart {
        match self {
            ParcelItem::Decisions { .. } | ParcelItem::DecisionSum { .. } => ParcelPart::Decisions,
            ParcelItem::Tracker { .. }
            | ParcelItem::Mass { .. }
            | ParcelItem::Sigma { .. }
            | ParcelItem::TrackerSum { .. }
            | ParcelItem::MassSum { .. } => ParcelPart::Trackers,
        }
    }
}

/// How a swarm with a ledger hands over from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handover {
    /// What each link's receiver takes.
    Links,
    /// The same, added up for every receiver.
    Sums,
    /// What a sender has ever set aside.
    Books,
}

/// What the agents of `to` need of those of `from` for one part of a round.
fn items(
    exchange: &Exchange<'_>,
    from: Block,
    to: Block,
    part: ParcelPart,
    handover: Handover,
) -> Vec<ParcelItem> {
    let mut items = all_items(exchange, from, to, handover);
    items.retain(|item| item.part() == part);
    items
}

/// What the agents of `to` need of those of `from`.
fn all_items(exchange: &Exchange<'_>, from: Block, to: Block, handover: Handover) -> Vec<ParcelItem> {
    match *exchange {
        Exchange::Weights { pull, push } if handover == Handover::Sums => {
            let decision_sum = |receiver| ParcelItem::DecisionSum { receiver };
            let decisions = |(sender, age)| ParcelItem::Decisions { sender, age };
            let tracker_sum = |receiver| ParcelItem::TrackerSum { receiver };
            let tracker = |(sender, _)| ParcelItem::Tracker { sender };
            let links = |rows| BlockLinks { rows: RoundRows::Weights(rows), from, to };
            let mut items = the_fewer(links(pull), decision_sum, decisions);
            items.extend(the_fewer(links(push), tracker_sum, tracker));
            items
        }
        Exchange::Weights { pull: rows, push }
        | Exchange::PushSum(PushSumExchange { ratio: rows, push, .. }) => {
            let rows = to.range().flat_map(|receiver| rows.row(receiver).chain(push.row(receiver)));
            let senders: BTreeSet<usize> =
                rows.map(|(sender, _)| sender).filter(|&sender| from.has(sender)).collect();
            let both = |sender| [ParcelItem::Decisions { sender, age: 0 }, ParcelItem::Tracker { sender }];
            senders.into_iter().flat_map(both).collect()
        }
        Exchange::Ledger { ages, awake } => {
            let links = BlockLinks { rows: RoundRows::Ages(ages, awake.len()), from, to };
            let decisions = |(sender, age)| ParcelItem::Decisions { sender, age };
            let decision_sum = |receiver| ParcelItem::DecisionSum { receiver };
            let frames = links.frames().into_iter();
            match handover {
                Handover::Books => {
                    let both = |(sender, age)| [decisions((sender, age)), ParcelItem::Sigma { sender, age }];
                    frames.flat_map(both).collect()
                }
                Handover::Links => {
                    let taken_by = |receiver| {
                        let mass = move |(sender, age)| ParcelItem::Mass { receiver, sender, age };
                        links.heard_by(receiver).into_iter().map(mass)
                    };
                    frames.map(decisions).chain(to.range().flat_map(taken_by)).collect()
                }
                Handover::Sums => {
                    let mut items = the_fewer(links, decision_sum, decisions);
                    let taken = |receiver| ParcelItem::MassSum { receiver };
                    items.extend(links.receivers().into_iter().map(taken));
                    items
                }
            }
        }
    }
}

/// A sum for every receiver, or every frame once.
fn the_fewer(
    links: BlockLinks<'_>,
    sum: impl Fn(usize) -> ParcelItem,
    frame: impl Fn((usize, usize)) -> ParcelItem,
) -> Vec<ParcelItem> {
    match links.has_fewer_sums() {
        true => links.receivers().into_iter().map(sum).collect(),
        false => links.frames().into_iter().map(frame).collect(),
    }
}

impl<D: Device> Fab<D> {
    /// Words of the parcel that the host of `from` has for the host of `to` in a round with this `exchange`.
    pub fn parcel_words(&self, exchange: &Exchange<'_>, from: Block, to: Block, part: ParcelPart) -> usize {
        let items = items(exchange, from, to, part, self.handover());
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
        for item in items(exchange, self.own, to, part, self.handover()) {
            for vectors in self.vectors() {
                let round = self.rounds() + 1;
                vectors.read_item(&self.device, &self.links, exchange, round, to, item, sink)?;
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
        for item in items(exchange, from, own, part, self.handover()) {
            self.lower.write_item(&self.device, exchange, round, from, item, source)?;
            if let Upper::Strength(x) = &mut self.upper {
                x.write_item(&self.device, exchange, round, from, item, source)?;
            }
        }
        assert_eq!(source.left(), 0, "words too many in a parcel");
        Ok(())
    }

    fn handover(&self) -> Handover {
        match self.config.sum_blocks.is_empty() {
            _ if self.has_books() => Handover::Books,
            true => Handover::Links,
            false => Handover::Sums,
        }
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
        if let ParcelItem::Sigma { .. } = item { SUM_WORDS * words } else { words }
    }

    #[expect(clippy::too_many_arguments, reason = "what of the state, when, and for whom")]
    fn read_item(
        &self,
        device: &D,
        links: &DeviceLinks<D>,
        exchange: &Exchange<'_>,
        round: u32,
        to: Block,
        item: ParcelItem,
        sink: &mut dyn ParcelSink<D>,
    ) -> Result<()> {
        let from = self.packed.own;
        // Each with its weight, in the order in which one process adds them up.
        let parts: Vec<(ParcelItem, f64)> = match (item, exchange) {
            (ParcelItem::DecisionSum { receiver }, Exchange::Ledger { ages, awake }) => {
                let links = BlockLinks { rows: RoundRows::Ages(ages, awake.len()), from, to };
                let part = |(sender, age)| (ParcelItem::Decisions { sender, age }, 1.0);
                links.heard_by(receiver).into_iter().map(part).collect()
            }
            (ParcelItem::MassSum { receiver }, Exchange::Ledger { ages, awake }) => {
                let links = BlockLinks { rows: RoundRows::Ages(ages, awake.len()), from, to };
                let part = |(sender, age)| (ParcelItem::Mass { receiver, sender, age }, 1.0);
                links.heard_by(receiver).into_iter().map(part).collect()
            }
            (ParcelItem::DecisionSum { receiver }, Exchange::Weights { pull, .. }) => {
                let part = |(sender, weight)| (ParcelItem::Decisions { sender, age: 0 }, weight);
                pull.row(receiver).filter(|&(sender, _)| from.has(sender)).map(part).collect()
            }
            (ParcelItem::TrackerSum { receiver }, Exchange::Weights { push, .. }) => {
                let part = |(sender, weight)| (ParcelItem::Tracker { sender }, weight);
                push.row(receiver).filter(|&(sender, _)| from.has(sender)).map(part).collect()
            }
            _ => return self.read_vectors(device, links, exchange, round, item, sink),
        };
        let mut sum = vec![D::Scalar::ZERO; self.item_words(item)];
        let mut vectors = Vec::with_capacity(parts.len());
        for &(part, _) in &parts {
            let mut vector = Vec::with_capacity(sum.len());
            self.read_vectors(device, links, exchange, round, part, &mut vector)?;
            vectors.push(vector);
        }
        if matches!(exchange, Exchange::Weights { .. }) {
            let weights =
                parts.iter().enumerate().map(|(at, &(_, weight))| (at, D::Scalar::from_f64(weight)));
            add_weighted(&mut sum, &weights.collect::<Vec<_>>(), |at| &vectors[at][..]);
        } else {
            for vector in &vectors {
                sum.iter_mut().zip(vector).for_each(|(sum, &word)| *sum += word);
            }
        }
        sink.write(device, &sum)
    }

    fn read_vectors(
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
        from: Block,
        item: ParcelItem,
        source: &mut dyn ParcelSource<D>,
    ) -> Result<()> {
        let Packed { groups, agents, stride, own: here } = self.packed;
        let place_for = |rows, receiver| {
            let links = BlockLinks { rows, from, to: here };
            links.place_for(receiver).expect("who takes a sum hears somebody")
        };
        // A sum takes the place of one of the frames.
        let item = match (item, exchange) {
            (ParcelItem::DecisionSum { receiver }, Exchange::Ledger { ages, .. }) => {
                let (sender, age) = place_for(RoundRows::Ages(ages, agents), receiver);
                ParcelItem::Decisions { sender, age }
            }
            (ParcelItem::MassSum { receiver }, Exchange::Ledger { ages, .. }) => {
                let (sender, age) = place_for(RoundRows::Ages(ages, agents), receiver);
                ParcelItem::Mass { receiver, sender, age }
            }
            (ParcelItem::DecisionSum { receiver }, Exchange::Weights { pull, .. }) => {
                let (sender, age) = place_for(RoundRows::Weights(pull), receiver);
                ParcelItem::Decisions { sender, age }
            }
            (ParcelItem::TrackerSum { receiver }, Exchange::Weights { push, .. }) => {
                ParcelItem::Tracker { sender: place_for(RoundRows::Weights(push), receiver).0 }
            }
            (item, _) => item,
        };
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
                (ParcelItem::Mass { .. } | ParcelItem::Sigma { .. }, None)
                | (
                    ParcelItem::DecisionSum { .. }
                    | ParcelItem::TrackerSum { .. }
                    | ParcelItem::MassSum { .. },
                    _,
                ) => {
                    unreachable!(
                        "mass waits only where there is a ledger, and sums have taken a frame's place"
                    )
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
