//! How agents mix what they send: by weights, or by a broadcast ledger. Each owns its state, and knows what of it goes into parcels
//! and checkpoints.

pub(super) mod ledger;
pub(super) mod push_sum;
mod weights;

use self::ledger::LedgerMixing;
use self::weights::WeightMixing;
use super::FabConfig;
use super::exchange::Exchange;
use super::parcel::{ParcelRoute, ParcelSink, ParcelSource};
use super::vectors::{ExchangedVectors, Tracking};
use crate::device::{Block, Device, Packed, Result};
use fabswarm_diagnostic::Diagnostic;

/// The way in which all sets of vectors of a swarm are mixed. Sets are numbered as in `FabState::sets`.
#[derive(Debug)]
pub(super) enum Mixing<D: Device> {
    Weights(WeightMixing<D>),
    Ledger(LedgerMixing<D>),
}

impl<D: Device> Mixing<D> {
    /// For sets of vectors that are packed in this way.
    pub(super) fn new(device: &D, config: &FabConfig, own: Block, sets: &[Packed]) -> Result<Self> {
        Ok(match &config.ledger {
            Some(ledger) => Mixing::Ledger(LedgerMixing::new(device, ledger, config.adapts_first(), sets)?),
            None => Mixing::Weights(WeightMixing::new(device, config, own)?),
        })
    }

    /// The ledger, where there is one.
    pub(super) fn ledger(&self) -> Option<&LedgerMixing<D>> {
        match self {
            Mixing::Weights(_) => None,
            Mixing::Ledger(ledger) => Some(ledger),
        }
    }

    /// The ledger, to be changed.
    pub(super) fn ledger_mut(&mut self) -> Option<&mut LedgerMixing<D>> {
        match self {
            Mixing::Weights(_) => None,
            Mixing::Ledger(ledger) => Some(ledger),
        }
    }

    /// Writes the exchange of `round` to the device.
    pub(super) fn write(&mut self, device: &D, round: u32, exchange: &Exchange) -> Result<()> {
        match (self, exchange) {
            (Mixing::Weights(weights), Exchange::Weights(exchange)) => weights.write(device, exchange),
            (Mixing::Ledger(ledger), Exchange::Ledger(exchange)) => ledger.write(device, round, exchange),
            _ => Err(wrong_kind(exchange)),
        }
    }

    /// Steps, and takes in the decisions of others; `strengths` are those of ½‖v‖² in the last round.
    pub(super) fn pull(
        &mut self,
        device: &D,
        set: usize,
        vectors: &mut ExchangedVectors<D>,
        strengths: &D::Reals,
    ) -> Result<()> {
        match self {
            Mixing::Weights(weights) => weights.pull(device, vectors, strengths),
            Mixing::Ledger(ledger) => ledger.pull(device, set, vectors),
        }
    }

    /// Pushes, and follows the gradient of `parity`, with the strength of ½‖v‖² where there is one; an open round leaves that to
    /// the next.
    pub(super) fn track(
        &mut self,
        device: &D,
        set: usize,
        vectors: &mut ExchangedVectors<D>,
        parity: usize,
        strengths: Option<&D::Reals>,
    ) -> Result<()> {
        if vectors.tracking != Tracking::EveryRound {
            return Ok(());
        }
        let packed = vectors.packed;
        let (t, gradient) = vectors.pursuit(parity, strengths);
        match self {
            Mixing::Weights(weights) => device.track(t, gradient, packed, &weights.push),
            Mixing::Ledger(ledger) => ledger.track(device, set, t, gradient),
        }
    }

    /// Words of a parcel.
    pub(super) fn parcel_words(
        &self,
        exchange: &Exchange,
        parcel: ParcelRoute,
        sets: &[ExchangedVectors<D>],
    ) -> Result<usize> {
        let items = match (self, exchange) {
            (Mixing::Weights(_), Exchange::Weights(exchange)) => exchange.senders(parcel).len(),
            (Mixing::Ledger(ledger), Exchange::Ledger(exchange)) => ledger.parcel_vectors(exchange, parcel),
            _ => return Err(wrong_kind(exchange)),
        };
        Ok(items * sets.iter().map(|set| set.packed.groups * set.packed.stride).sum::<usize>())
    }

    /// Puts a parcel into `sink`, at the start of `round`.
    pub(super) fn write_parcel(
        &self,
        device: &D,
        (round, exchange): (u32, &Exchange),
        parcel: ParcelRoute,
        sets: &[ExchangedVectors<D>],
        sink: &mut dyn ParcelSink<D>,
    ) -> Result<()> {
        match (self, exchange) {
            (Mixing::Weights(weights), Exchange::Weights(exchange)) => {
                weights.write_parcel(device, exchange, parcel, sets, sink)
            }
            (Mixing::Ledger(ledger), Exchange::Ledger(exchange)) => {
                ledger.write_parcel(device, (round, exchange), parcel, sets, sink)
            }
            _ => Err(wrong_kind(exchange)),
        }
    }

    /// Takes a parcel to where `round` looks for it.
    pub(super) fn take_parcel(
        &mut self,
        device: &D,
        (round, exchange): (u32, &Exchange),
        parcel: ParcelRoute,
        sets: &mut [ExchangedVectors<D>],
        source: &mut dyn ParcelSource<D>,
    ) -> Result<()> {
        match (self, exchange) {
            (Mixing::Weights(_), Exchange::Weights(exchange)) => {
                weights::take_parcel(device, exchange, parcel, sets, source)
            }
            (Mixing::Ledger(ledger), Exchange::Ledger(exchange)) => {
                ledger.take_parcel(device, (round, exchange), parcel, source)
            }
            _ => Err(wrong_kind(exchange)),
        }
    }
}

fn wrong_kind(exchange: &Exchange) -> Diagnostic {
    let mixes_by = match exchange {
        Exchange::Weights(_) => "weights",
        Exchange::Ledger(_) => "a ledger",
    };
    Diagnostic::bare(format!("a swarm that mixes in another way cannot mix by {mixes_by}"))
}
