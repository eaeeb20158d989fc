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
pub(crate) use super::parcel_words::{ParcelSink, ParcelSource};
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

impl<D: Device> Fab<D> {
    /// Words of a parcel in a round with this `exchange`.
    pub(crate) fn parcel_words(&self, exchange: &Exchange, parcel: ParcelRoute) -> Result<usize> {
        self.state.mixing.parcel_words(exchange, parcel, &self.state.sets)
    }

    /// Puts a parcel of this host into `sink`, at the start of the round with this `exchange`.
    pub(crate) fn write_parcel(
        &self,
        exchange: &Exchange,
        parcel: ParcelRoute,
        sink: &mut dyn ParcelSink<D>,
    ) -> Result<()> {
        let round = (self.rounds() + 1, exchange);
        self.state.mixing.write_parcel(&self.device, round, parcel, &self.state.sets, sink)
    }

    /// Takes a parcel for this host: decisions before [`Fab::descend`], trackers before [`Fab::track_gradients`].
    ///
    /// # Panics
    /// When it does not have [`Fab::parcel_words`] words.
    pub(crate) fn take_parcel(
        &mut self,
        round: (u32, &Exchange),
        parcel: ParcelRoute,
        source: &mut dyn ParcelSource<D>,
    ) -> Result<()> {
        self.state.mixing.take_parcel(&self.device, round, parcel, &mut self.state.sets, source)?;
        assert_eq!(source.left(), 0, "words too many in a parcel");
        Ok(())
    }
}
