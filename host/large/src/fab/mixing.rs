//! How agents mix what they send: by weights, or by a broadcast ledger. Each knows what goes into parcels.

pub(super) mod ledger;
pub(super) mod push_sum;
pub(super) mod weights;

use self::ledger::LedgerMixing;
use self::weights::WeightMixing;
use super::FabConfig;
use super::exchange::Exchange;
use super::vectors::{ExchangedVectors, Tracking};
use crate::device::{Device, Result};
use fabswarm_diagnostic::Diagnostic;

/// The way in which all sets of vectors of a swarm are mixed.
#[derive(Debug)]
pub(super) enum Mixing<D: Device> {
    Weights(WeightMixing<D>),
    Ledger(LedgerMixing<D>),
}

impl<D: Device> Mixing<D> {
    pub(super) fn new(device: &D, config: &FabConfig) -> Result<Self> {
        Ok(match &config.ledger {
            Some(ledger) => Mixing::Ledger(LedgerMixing::new(device, ledger, config.adapts_first())?),
            None => Mixing::Weights(WeightMixing::new(device, config)?),
        })
    }

    /// Writes the exchange of a round to the device.
    pub(super) fn write(&mut self, device: &D, exchange: &Exchange) -> Result<()> {
        match (self, exchange) {
            (Mixing::Weights(weights), Exchange::Weights(exchange)) => weights.write(device, exchange),
            (Mixing::Ledger(ledger), Exchange::Ledger(exchange)) => ledger.write(device, exchange),
            _ => Err(wrong_kind(exchange)),
        }
    }

    /// Steps, and takes in the decisions of others; `strengths` are those of ½‖v‖² in the last round.
    pub(super) fn pull(
        &self,
        device: &D,
        vectors: &mut ExchangedVectors<D>,
        strengths: &D::Reals,
    ) -> Result<()> {
        match self {
            Mixing::Weights(weights) => weights.pull(device, vectors, strengths),
            Mixing::Ledger(ledger) => ledger.pull(device, vectors),
        }
    }

    /// Pushes, and follows the gradient of `parity`, with the strength of ½‖v‖² where there is one; an open round leaves that to
    /// the next.
    pub(super) fn track(
        &self,
        device: &D,
        vectors: &mut ExchangedVectors<D>,
        parity: usize,
        strengths: Option<&D::Reals>,
    ) -> Result<()> {
        if vectors.tracking != Tracking::EveryRound {
            return Ok(());
        }
        let packed = vectors.packed;
        let (t, gradient, ledger) = vectors.pursuit(parity, strengths);
        match self {
            Mixing::Weights(weights) => device.track(t, gradient, packed, &weights.push),
            Mixing::Ledger(mixing) => mixing.track(device, t, gradient, ledger),
        }
    }
}

/// Refuses an exchange of another kind than the configuration asks for.
pub(super) fn wrong_kind(exchange: &Exchange) -> Diagnostic {
    let mixes_by = match exchange {
        Exchange::Weights(_) => "weights",
        Exchange::Ledger(_) => "a ledger",
    };
    Diagnostic::bare(format!("a swarm that mixes in another way cannot mix by {mixes_by}"))
}
