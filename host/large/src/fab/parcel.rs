//! Parcels: what one host sends another in a round.
//!
//! Links of a round follow from the scenario, so both ends know what is in a parcel, and it has no more than its words: for every
//! agent of the sending host that some agent of the other one hears,
//!
//! ```text
//! push weights   v_j and t_j
//! ledger         v_j as it was when the frame was sent, and for every link what its receiver takes, w_ij + s_ij t_j − recent
//! ```
//!
//! Where agents adapt before they combine, v_j − η m_j takes the place of v_j.
//!
//! Mass that waits on a link between hosts is kept by the sender's, and computed with the same operations in the same order as in one
//! process.

use serde::{Deserialize, Serialize};

use super::Fab;
use super::exchange::Exchange;
use super::mixing::{Mixing, ledger, weights, wrong_kind};
use crate::device::{Block, Device, Result};

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

/// The agents of a parcel: the host of `from` has it for the host of `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParcelRoute {
    pub(crate) from: Block,
    pub(crate) to: Block,
    pub(crate) part: ParcelPart,
}

/// Takes words of the device's state, which begin at an offset, into a parcel: one behind the other.
pub(crate) type ParcelSink<'a, D> = dyn FnMut(&<D as Device>::Reals, usize, usize) -> Result<()> + 'a;

/// Copies the next words of a parcel to the device's state, at an offset.
pub(crate) type ParcelSource<'a, D> =
    dyn FnMut(&D, &mut <D as Device>::Reals, usize, usize) -> Result<()> + 'a;

impl<D: Device> Fab<D> {
    /// Words of a parcel in a round with this `exchange`.
    pub(crate) fn parcel_words(&self, exchange: &Exchange, parcel: ParcelRoute) -> usize {
        let vectors = match exchange {
            Exchange::Weights(exchange) => exchange.senders(parcel).len(),
            Exchange::Ledger(exchange) => exchange.parcel_vectors(parcel),
        };
        vectors * self.state.sets.iter().map(|set| set.packed.groups * set.packed.stride).sum::<usize>()
    }

    /// Puts a parcel of this host into `sink`, at the start of the round with this `exchange`.
    pub(crate) fn write_parcel(
        &self,
        exchange: &Exchange,
        parcel: ParcelRoute,
        sink: &mut ParcelSink<'_, D>,
    ) -> Result<()> {
        let (device, sets) = (&self.device, &self.state.sets);
        match (&self.state.mixing, exchange) {
            (Mixing::Weights(weights), Exchange::Weights(exchange)) => {
                weights.write_parcel(device, exchange, parcel, sets, sink)
            }
            (Mixing::Ledger(ledger), Exchange::Ledger(exchange)) => {
                ledger.write_parcel(device, exchange, parcel, sets, sink)
            }
            _ => Err(wrong_kind(exchange)),
        }
    }

    /// Takes a parcel for this host: decisions before [`Fab::descend`], trackers before [`Fab::track_gradients`]. It has
    /// [`Fab::parcel_words`] words.
    pub(crate) fn take_parcel(
        &mut self,
        exchange: &Exchange,
        parcel: ParcelRoute,
        source: &mut ParcelSource<'_, D>,
    ) -> Result<()> {
        let (device, sets) = (&self.device, &mut self.state.sets);
        match exchange {
            Exchange::Weights(exchange) => weights::take_parcel(device, exchange, parcel, sets, source),
            Exchange::Ledger(exchange) => ledger::take_parcel(device, exchange, parcel, sets, source),
        }
    }
}
